faultwire::contract!(pub mod errors = "ferry.toml");

fn main() {
    let at = faultwire::contract::Reset::Text("2026-01-19T15:32:10Z".into());
    let _ = errors::broken().resets_at(at);
}
