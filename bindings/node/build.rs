//! Tells the linker where Node's symbols come from.

fn main() {
    napi_build::setup();
}
