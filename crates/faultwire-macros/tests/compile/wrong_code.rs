faultwire::contract!(pub mod errors = "ferry.toml");

fn main() {
    let _ = errors::Code::Sunk;
}
