faultwire::contract!(pub mod errors = "ferry.toml");

fn main() {
    let _ = errors::broken().after(std::time::Duration::from_secs(1));
}
