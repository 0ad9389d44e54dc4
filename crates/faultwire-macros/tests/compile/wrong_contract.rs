faultwire::contract!(pub mod errors = "mistaken.toml");

fn main() {}
