faultwire::contract!(pub mod errors = builtin "kaizen");

fn main() {}
