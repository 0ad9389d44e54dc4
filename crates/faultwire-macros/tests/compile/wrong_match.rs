faultwire::contract!(pub mod errors = "ferry.toml");

fn main() {
    match errors::Code::Full {
        errors::Code::Broken => {}
    }
}
