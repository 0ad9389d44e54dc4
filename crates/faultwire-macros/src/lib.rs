//! `contract!`: a module of typed codes from a contract file, read when the crate is compiled;
//! `#[manifest]`: what a server's tools require and may answer. Use it through `faultwire`, whose
//! types it names.

mod input;
mod manifest;
mod module;
mod name;

use proc_macro::TokenStream;
use syn::{ItemImpl, parse_macro_input};

use input::Input;
use manifest::Block;

/// The path is relative to the directory of the crate's `Cargo.toml`, or to the file that names it.
/// A mistake in the file is a compiler error with its line, and the crate is recompiled if the file
/// changes.
#[proc_macro]
pub fn contract(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as Input);
    module::of(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Every `#[tool]` needs a `#[declare(…)]`. `requires` of the block lists all requirements that
/// tools can have; a tool without profiles is in all of them.
#[proc_macro_attribute]
pub fn manifest(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let block = parse_macro_input!(attribute as Block);
    let tools = parse_macro_input!(item as ItemImpl);
    manifest::of(&block, tools).unwrap_or_else(syn::Error::into_compile_error).into()
}
