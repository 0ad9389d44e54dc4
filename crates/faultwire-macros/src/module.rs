//! The module that a contract becomes.

use faultwire_contract::{Code, Contract, RetryClass};
use proc_macro2::TokenStream;
use quote::quote;

use crate::input::{Found, Input, Text};
use crate::name::Names;

pub(crate) fn of(input: &Input) -> syn::Result<TokenStream> {
    let Found { contract, text } = input.find()?;
    let names =
        Names::all(contract.codes()).map_err(|what| syn::Error::new(input.name.span(), what))?;
    let (attributes, visibility, name) = (&input.attributes, &input.visibility, &input.name);
    let title = format!("The codes of {} {}.", contract.title, contract.version);
    let contract_fn = contract_fn(&contract, &text);
    let code = code_enum(&contract, &names);
    let rows = rows(&contract, &names);
    Ok(quote! {
        #(#attributes)*
        #[doc = #title]
        #visibility mod #name {
            #contract_fn
            #code
            #rows
        }
    })
}

/// The contract itself, loaded when it is first needed.
fn contract_fn(contract: &Contract, text: &Text) -> TokenStream {
    let load = match text {
        Text::Builtin(name) => quote! {
            ::faultwire::contract::builtin(#name).expect("it was there at compile time")
        },
        // Including the file recompiles the crate if the file changes.
        Text::File(path) => {
            let file = format!("{}.toml", contract.name);
            quote! {
                ::std::sync::Arc::new(
                    ::faultwire::contract::Contract::load(#file, include_str!(#path))
                        .expect("it was right at compile time"),
                )
            }
        }
    };
    quote! {
        /// The contract that these codes are of.
        pub fn contract() -> &'static ::std::sync::Arc<::faultwire::contract::Contract> {
            static LOADED: ::std::sync::LazyLock<::std::sync::Arc<::faultwire::contract::Contract>> =
                ::std::sync::LazyLock::new(|| #load);
            &LOADED
        }
    }
}

/// The enum of all codes, and every fact about them.
fn code_enum(contract: &Contract, names: &[Names]) -> TokenStream {
    let codes = contract.codes();
    let variants = names.iter().zip(codes).map(|(names, code)| {
        let (variant, doc) = (&names.variant, doc(code));
        let retired = code.retired.as_ref().map(|retired| {
            let note = format!("use {} instead", retired.successor);
            quote!(#[deprecated(note = #note)])
        });
        quote!(#[doc = #doc] #retired #variant)
    });
    let all: Vec<_> = names.iter().map(|names| &names.variant).collect();
    let arms = |of: &dyn Fn(&Code) -> TokenStream| {
        let values = codes.iter().map(of);
        quote!(match self { #(Self::#all => #values,)* })
    };
    let text = |of: fn(&Code) -> &str| {
        arms(&move |code| {
            let text = of(code);
            quote!(#text)
        })
    };
    let id = text(|code| &code.id);
    let category = text(|code| &code.category);
    let alert = text(|code| &code.alert);
    let message = text(|code| &code.message);
    let action = text(|code| &code.action);
    let retry = arms(&|code| class(code.default_retry()));
    let status = arms(&|code| {
        let status = code.default_status();
        quote!(#status)
    });
    let ids = codes.iter().map(|code| &code.id);
    quote! {
        /// Every code of the contract.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            #(#variants,)*
        }

        #[allow(deprecated)]
        impl Code {
            /// All of them, in the order of the contract.
            pub const ALL: &'static [Self] = &[#(Self::#all),*];

            /// Its name on the wire.
            #[must_use]
            pub const fn id(self) -> &'static str { #id }

            /// The group it belongs to.
            #[must_use]
            pub const fn category(self) -> &'static str { #category }

            /// Its default retry class.
            #[must_use]
            pub const fn retry(self) -> ::faultwire::contract::RetryClass { #retry }

            /// Its HTTP status.
            #[must_use]
            pub const fn status(self) -> u16 { #status }

            /// Its alert level.
            #[must_use]
            pub const fn alert(self) -> &'static str { #alert }

            /// Its canonical message.
            #[must_use]
            pub const fn message(self) -> &'static str { #message }

            /// What the client should do.
            #[must_use]
            pub const fn action(self) -> &'static str { #action }

            /// The code of that name.
            #[must_use]
            pub fn from_id(id: &str) -> ::core::option::Option<Self> {
                match id {
                    #(#ids => ::core::option::Option::Some(Self::#all),)*
                    _ => ::core::option::Option::None,
                }
            }
        }

        impl ::faultwire::TypedCode for Code {
            fn contract() -> &'static ::std::sync::Arc<::faultwire::contract::Contract> {
                contract()
            }

            fn id(self) -> &'static str {
                Self::id(self)
            }

            fn from_id(id: &str) -> ::core::option::Option<Self> {
                Self::from_id(id)
            }
        }

        impl ::core::fmt::Display for Code {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(self.id())
            }
        }

        impl ::core::convert::From<Code> for ::faultwire::contract::Report {
            fn from(code: Code) -> Self {
                Self::new(code.id())
            }
        }

        /// A failure under this contract.
        pub type Failure = ::faultwire::Failure<Code>;
    }
}

/// A type for each code, whose traits say what a failure may set, and a function that makes such a
/// failure.
fn rows(contract: &Contract, names: &[Names]) -> TokenStream {
    let living = names.iter().zip(contract.codes()).filter(|(_, code)| code.retired.is_none());
    let (types, functions): (Vec<_>, Vec<_>) = living
        .map(|(names, code)| {
            let (variant, function) = (&names.variant, &names.function);
            let allows = allows(code, variant);
            let what = format!("What a failure of `{}` may name.", code.id);
            let types = quote! {
                #[doc = #what]
                #[derive(Clone, Copy, Debug)]
                pub struct #variant;
                impl ::faultwire::Row for #variant {
                    type Code = super::Code;
                    const CODE: super::Code = super::Code::#variant;
                    const ID: &'static str = Self::CODE.id();
                }
                #allows
            };
            let doc = doc(code);
            let functions = quote! {
                #[doc = #doc]
                #[must_use]
                pub fn #function() -> ::faultwire::Draft<row::#variant> {
                    ::faultwire::Draft::new()
                }
            };
            (types, functions)
        })
        .unzip();
    quote! {
        /// A type for each code that is still answered.
        pub mod row {
            #(#types)*
        }
        #(#functions)*
    }
}

fn allows(code: &Code, variant: &syn::Ident) -> TokenStream {
    let takes_delay = code.retry.iter().any(|class| class.takes_delay());
    let takes_delay = takes_delay.then(|| quote!(impl ::faultwire::TakesDelay for #variant {}));
    let keeps_data = code.keeps_data.then(|| quote!(impl ::faultwire::KeepsData for #variant {}));
    let several = code.retry.len() > 1;
    let chooses = |class: RetryClass, name: TokenStream| {
        let listed = several && code.retry.contains(&class);
        listed.then(|| quote!(impl ::faultwire::#name for #variant {}))
    };
    let may_stop = chooses(RetryClass::Never, quote!(MayStop));
    let may_go_on = chooses(RetryClass::Immediate, quote!(MayRepeat));
    let statuses = code.status.iter();
    quote! {
        #takes_delay
        #keeps_data
        #may_stop
        #may_go_on
        #(impl ::faultwire::HasStatus<#statuses> for #variant {})*
    }
}

/// What people read of a code.
fn doc(code: &Code) -> String {
    let mut doc = format!("`{}`: {}", code.id, code.message);
    for more in [&code.meaning, &code.action] {
        if !more.is_empty() {
            doc.push_str("\n\n");
            doc.push_str(more);
        }
    }
    doc
}

fn class(class: RetryClass) -> TokenStream {
    match class {
        RetryClass::Never => quote!(::faultwire::contract::RetryClass::Never),
        RetryClass::Immediate => quote!(::faultwire::contract::RetryClass::Immediate),
        RetryClass::After => quote!(::faultwire::contract::RetryClass::After),
        RetryClass::Backoff => quote!(::faultwire::contract::RetryClass::Backoff),
    }
}
