faultwire::contract!(pub mod errors = "nowhere.toml");

fn main() {}
