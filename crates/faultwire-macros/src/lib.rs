//! `contract!`: a module of typed codes from a contract file, read when the crate is compiled.
//! Use it through `faultwire`, whose types it names.

mod input;
mod module;
mod name;

use proc_macro::TokenStream;
use syn::parse_macro_input;

use input::Input;

/// Makes a module of typed codes from a contract file.
///
/// ```ignore
/// faultwire::contract!(pub mod errors = "contract.toml");
/// ```
///
/// The path begins at the directory of the crate's `Cargo.toml`, or beside the file that names it.
/// A mistake in the file is an error
/// of the compiler that names its line, and the crate is compiled again when the file changes.
#[proc_macro]
pub fn contract(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as Input);
    module::of(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
