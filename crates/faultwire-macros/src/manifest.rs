//! `#[manifest]` on the `impl` block of a server's tools: collects what `#[declare(…)]` and the
//! types say about each tool.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Ident, ImplItem, ImplItemFn, ItemImpl, LitStr, Meta, ReturnType, Token};

/// The attribute of the block: all requirements that tools can have.
#[derive(Default)]
pub(crate) struct Block {
    requirements: Vec<Ident>,
}

/// The attribute of a tool.
struct Facts {
    category: LitStr,
    mutation: bool,
    requires: Vec<Ident>,
    profiles: Vec<Ident>,
}

impl Parse for Block {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut block = Self::default();
        for meta in Punctuated::<Meta, Token![,]>::parse_terminated(input)? {
            match meta {
                Meta::List(list) if list.path.is_ident("requires") => {
                    block.requirements = names(&list)?;
                }
                other => {
                    return Err(syn::Error::new_spanned(
                        other,
                        "only `requires(…)` is allowed here",
                    ));
                }
            }
        }
        Ok(block)
    }
}

impl Facts {
    fn of(attribute: &Attribute) -> syn::Result<Self> {
        let metas = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?;
        let (mut category, mut mutation) = (None, false);
        let (mut requires, mut profiles) = (Vec::new(), Vec::new());
        for meta in metas {
            match meta {
                Meta::NameValue(pair) if pair.path.is_ident("category") => {
                    category = Some(text(&pair.value)?);
                }
                Meta::Path(path) if path.is_ident("mutation") => mutation = true,
                Meta::List(list) if list.path.is_ident("requires") => requires = names(&list)?,
                Meta::List(list) if list.path.is_ident("profiles") => profiles = names(&list)?,
                other => {
                    let known = "expected `category = \"…\"`, `mutation`, `requires(…)` and \
                                 `profiles(…)`";
                    return Err(syn::Error::new_spanned(other, known));
                }
            }
        }
        let what = "a tool needs a category: `category = \"read\"`";
        let category = category.ok_or_else(|| syn::Error::new_spanned(attribute, what))?;
        Ok(Self { category, mutation, requires, profiles })
    }
}

pub(crate) fn of(block: &Block, mut tools: ItemImpl) -> syn::Result<TokenStream> {
    if !tools.generics.params.is_empty() {
        let what = "a server with generic parameters cannot have a manifest";
        return Err(syn::Error::new_spanned(&tools.generics, what));
    }
    let server = tools.self_ty.clone();
    let mut declared = Vec::new();
    for item in &mut tools.items {
        if let ImplItem::Fn(function) = item {
            declared.extend(entry(block, &server, function)?);
        }
    }
    if declared.is_empty() {
        return Err(syn::Error::new_spanned(&server, "this block has no `#[tool]`"));
    }
    let requirements = block.requirements.iter().map(ToString::to_string);
    Ok(quote! {
        #tools

        ::faultwire::__manifest::inventory::submit! {
            ::faultwire::__manifest::Part {
                server: ::core::any::TypeId::of::<#server>,
                server_name: ::core::stringify!(#server),
                requirements: &[#(#requirements),*],
                tools: &[#(#declared),*],
            }
        }
    })
}

/// What is known of a function, if it is a tool.
fn entry(
    block: &Block,
    server: &syn::Type,
    function: &mut ImplItemFn,
) -> syn::Result<Option<TokenStream>> {
    let named = |name: &'static str| {
        move |attribute: &Attribute| {
            attribute.path().segments.last().is_some_and(|segment| segment.ident == name)
        }
    };
    let declares = function.attrs.iter().position(named("declare"));
    let declares = declares.map(|at| function.attrs.remove(at));
    if !function.attrs.iter().any(named("tool")) {
        let what = "only a `#[tool]` can be declared";
        return declares.map_or(Ok(None), |it| Err(syn::Error::new_spanned(it, what)));
    }
    let name = &function.sig.ident;
    let what = "describe this tool: #[declare(category = \"read\")]";
    let attribute = declares.ok_or_else(|| syn::Error::new(name.span(), what))?;
    let facts = Facts::of(&attribute)?;
    for needed in &facts.requires {
        if !block.requirements.contains(needed) {
            let what =
                format!("add it to the block's requirements: #[manifest(requires({needed}))]");
            return Err(syn::Error::new(needed.span(), what));
        }
    }
    let ReturnType::Type(_, answers) = &function.sig.output else {
        let what = "a tool in a manifest must return `Result<_, Failure<…>>`";
        return Err(syn::Error::new(name.span(), what));
    };
    // rmcp registers the tool under this name.
    let tool = format_ident!("{name}_tool_attr");
    let Facts { category, mutation, .. } = &facts;
    let requires = facts.requires.iter().map(ToString::to_string);
    let profiles = facts.profiles.iter().map(ToString::to_string);
    Ok(Some(quote! {
        ::faultwire::__manifest::Declared {
            tool: <#server>::#tool,
            category: #category,
            mutation: #mutation,
            requires: &[#(#requires),*],
            profiles: &[#(#profiles),*],
            codes: <<#answers as ::faultwire::__manifest::Raises>::Set as ::faultwire::CodeSet>::LISTED,
            contract: ::faultwire::__manifest::contract_of::<#answers>,
        }
    }))
}

fn names(list: &syn::MetaList) -> syn::Result<Vec<Ident>> {
    let names = list.parse_args_with(Punctuated::<Ident, Token![,]>::parse_terminated)?;
    Ok(names.into_iter().collect())
}

fn text(value: &syn::Expr) -> syn::Result<LitStr> {
    match value {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Ok(text.clone()),
        other => Err(syn::Error::new_spanned(other, "expected a string")),
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    /// The text of a mistake's error.
    fn said(block: &Block, tools: ItemImpl) -> String {
        of(block, tools).unwrap_err().to_string()
    }

    #[test]
    fn t6_mistakes_in_declarations_are_named() {
        let none = Block::default();
        let undeclared = parse_quote! { impl Bot { #[tool] async fn post(&self) -> Answer {} } };
        assert!(said(&none, undeclared).contains("describe this tool"));
        let no_tool = parse_quote! { impl Bot { #[declare(category = "x")] fn help(&self) {} } };
        assert!(said(&none, no_tool).contains("only a `#[tool]` can be declared"));
        let empty = parse_quote! { impl Bot { fn help(&self) {} } };
        assert!(said(&none, empty).contains("this block has no `#[tool]`"));
        let generic = parse_quote! { impl<T> Bot<T> {} };
        assert!(said(&none, generic).contains("a server with generic parameters"));
        for (facts, what) in [
            (quote!(mutation), "a tool needs a category"),
            (quote!(category = 3), "expected a string"),
            (quote!(category = "x", mutates), "expected `category"),
            (quote!(category = "x", requires(db)), "#[manifest(requires(db))]"),
        ] {
            let tools = parse_quote! {
                impl Bot { #[tool] #[declare(#facts)] async fn post(&self) -> Answer {} }
            };
            assert!(said(&none, tools).contains(what), "{facts}");
        }
        let silent = parse_quote! {
            impl Bot { #[tool] #[declare(category = "x")] async fn post(&self) {} }
        };
        assert!(said(&none, silent).contains("must return `Result<_, Failure<…>>`"));
        let block = syn::parse_str::<Block>("profiles(api)").map(|_| ());
        assert!(block.unwrap_err().to_string().contains("only `requires(…)`"));
    }
}
