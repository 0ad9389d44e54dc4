//! The built-in contracts: the files of `contracts/`, compiled in, loaded when first asked for.

use std::sync::{Arc, LazyLock};

use crate::contract::Contract;
use crate::load;

/// A built-in contract.
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
                    load_file($name, include_str!(concat!("../contracts/", $name, ".toml")))
                }),
            }
        ),+];
    };
}

builtins!["standard", "kaiza", "tuitbot", "workrail", "context-resolve", "owlclaw"];

/// The default contract.
pub const DEFAULT: &str = "standard";

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

fn load_file(name: &str, text: &str) -> Arc<Contract> {
    match load::built_in(&format!("{name}.toml"), text) {
        Ok(contract) => Arc::new(contract),
        // The files are part of this build, and a test loads each of them.
        Err(mistakes) => panic!("a built-in contract does not load: {mistakes}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a1_every_built_in_contract_passes_the_checks_of_any_other() {
        for builtin in &BUILTINS {
            let checked = Contract::load(builtin.name, builtin.text).unwrap();
            assert_eq!(checked.name, builtin.name);
        }
    }
}
