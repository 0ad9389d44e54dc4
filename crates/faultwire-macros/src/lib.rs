//! `contract!`: a module of typed codes from a contract file, read when the crate is compiled;
//! `#[manifest]`: what the tools of a server need and may answer.
//! Use it through `faultwire`, whose types it names.

mod input;
mod manifest;
mod module;
mod name;

use proc_macro::TokenStream;
use syn::{ItemImpl, parse_macro_input};

use input::Input;
use manifest::Block;

/// The path begins at the directory of the crate's `Cargo.toml`, or beside the file that names it.
/// A mistake in the file is an error
/// of the compiler that names its line, and the crate is compiled again when the file changes.
#[proc_macro]
pub fn contract(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as Input);
    module::of(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Every `#[tool]` says what it is. `requires` of the block names what tools can need at all; a
/// tool that names no profile is in all of them.
#[proc_macro_attribute]
pub fn manifest(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let block = parse_macro_input!(attribute as Block);
    let tools = parse_macro_input!(item as ItemImpl);
    manifest::of(&block, tools).unwrap_or_else(syn::Error::into_compile_error).into()
}
