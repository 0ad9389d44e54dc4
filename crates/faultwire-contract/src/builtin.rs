//! The built-in contracts: the files of `contracts/`, compiled in, loaded when first asked for.

use std::sync::{Arc, LazyLock};

use crate::contract::Contract;

/// A contract that comes with the program.
pub struct Builtin {
    /// The contract's name.
    pub name: &'static str,
    /// The text of its file.
    pub text: &'static str,
    loaded: LazyLock<Arc<Contract>>,
}

macro_rules! builtins {
    ($($name:literal),+ $(,)?) => {
        /// The built-in contracts.
        pub static BUILTINS: [Builtin; [$($name),+].len()] = [$(
            Builtin {
                name: $name,
                text: include_str!(concat!("../contracts/", $name, ".toml")),
                loaded: LazyLock::new(|| {
                    load($name, include_str!(concat!("../contracts/", $name, ".toml")))
                }),
            }
        ),+];
    };
}

builtins!["kaiza", "tuitbot", "workrail", "context-resolve", "owlclaw"];

/// The contract that speaks where nobody chose one.
pub const DEFAULT: &str = "owlclaw";

impl Builtin {
    /// The contract itself.
    #[must_use]
    pub fn contract(&self) -> Arc<Contract> {
        Arc::clone(&self.loaded)
    }
}

/// The built-in contract of that name.
#[must_use]
pub fn builtin(name: &str) -> Option<Arc<Contract>> {
    BUILTINS.iter().find(|b| b.name == name).map(Builtin::contract)
}

fn load(name: &str, text: &str) -> Arc<Contract> {
    match Contract::load(&format!("{name}.toml"), text) {
        Ok(contract) => Arc::new(contract),
        // The files are part of this build, and a test loads each of them.
        Err(mistakes) => panic!("a built-in contract does not load: {mistakes}"),
    }
}
