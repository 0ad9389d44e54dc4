faultwire::contract!(pub mod errors = "ferry.toml");

fn main() {
    let _ = errors::full().keeping(Default::default());
}
