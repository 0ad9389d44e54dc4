//! Secrets in the settings: where they are read from, and who must not see them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use faultwire_gateway::{ClientSettings, MountSettings, Upstream};

use crate::config::{self, Config};
use crate::edge;
use crate::problem::Problem;

/// A shorter secret could be a common word.
const SHORTEST_SECRET: usize = 6;

/// Authentication schemes that can precede a secret.
const SCHEMES: [&str; 4] = ["bearer", "basic", "digest", "apikey"];

/// Redacts the settings' secrets in every failure, even if a server repeats them, and withholds
/// each from all servers but its own. Returns the variables that servers are started without.
pub fn keep(
    mounts: &mut [MountSettings],
    clients: &[ClientSettings],
    config: &Config,
) -> BTreeSet<OsString> {
    let mut secrets: BTreeSet<String> =
        clients.iter().filter_map(|client| client.token.clone()).collect();
    for mount in &*mounts {
        let remote = match &mount.upstream {
            Upstream::Url(remote) => remote,
            Upstream::Command(launch) => {
                let given = launch.given.iter().filter_map(|(_, value)| value.to_str());
                secrets.extend(given.map(str::to_owned));
                continue;
            }
        };
        let values = remote.headers.values().filter_map(|value| value.to_str().ok());
        let is_scheme = |word: &&str| SCHEMES.iter().any(|known| word.eq_ignore_ascii_case(known));
        for value in values {
            secrets.insert(value.to_owned());
            let words = value.split([' ', '\t', ';', ',']).filter(|word| !is_scheme(word));
            for word in words {
                secrets.insert(word.to_owned());
                // In a pair such as a cookie, the value is the secret.
                secrets.extend(word.split_once('=').map(|(_, value)| value.to_owned()));
            }
        }
    }
    secrets.retain(|secret| secret.len() >= SHORTEST_SECRET);
    let mut withheld = named(config);
    withheld.extend(edge::variables_with(|value| secrets.iter().any(|s| value.contains(&**s))));
    for mount in &mut *mounts {
        if !secrets.is_empty() {
            let contract = mount.settings.contract.keeping(secrets.iter().map(String::as_str));
            mount.settings.contract = Arc::new(contract);
        }
        if let Upstream::Command(launch) = &mut mount.upstream {
            launch.withheld.clone_from(&withheld);
        }
    }
    withheld
}

/// The variables that the settings name as places of secrets.
pub fn named(config: &Config) -> BTreeSet<OsString> {
    let tokens = config.client.iter().filter_map(|client| client.token_env.as_ref());
    let of_mount = |mount: &'_ config::Mount| {
        mount.headers_env.values().chain(mount.env.values()).cloned().collect::<Vec<_>>()
    };
    let mounts = config.mount.iter().flat_map(of_mount);
    tokens.cloned().chain(mounts).map(OsString::from).collect()
}

/// Reads a secret from a variable or a file. It is never printed.
pub fn secret(
    variable: Option<&str>,
    file: Option<&PathBuf>,
    place: &str,
) -> Result<Option<String>, Problem> {
    let text = match (variable, file) {
        (None, None) => return Ok(None),
        (Some(variable), None) => edge::variable(variable).ok_or_else(|| {
            let what = format!("the environment variable {variable} is not set");
            Problem::bad(place, what, "set it before starting faultwire")
        })?,
        (None, Some(file)) => edge::file(file).map_err(|e| e.asked_at(place.to_owned()))?,
        (Some(_), Some(_)) => {
            return Err(Problem::bad(
                place,
                "token_env and token_file are both set",
                "set only one of them",
            ));
        }
    };
    let text = text.trim().to_owned();
    if text.is_empty() {
        return Err(Problem::bad(
            place,
            "the secret is empty",
            "set it to a value that is not blank",
        ));
    }
    Ok(Some(text))
}
