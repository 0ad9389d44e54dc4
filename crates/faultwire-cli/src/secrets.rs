//! Secrets of the settings: where they come from, and who must not see them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use faultwire_gateway::{ClientSettings, MountSettings, Upstream};

use crate::config::{self, Config};
use crate::edge;
use crate::problem::Problem;

/// A shorter secret could be a word that stands in any text.
const SHORTEST_SECRET: usize = 6;

/// How a secret is to be taken, which may stand before it.
const SCHEMES: [&str; 4] = ["bearer", "basic", "digest", "apikey"];

/// No failure tells a secret of the settings, even if a server repeats it, and no server is given
/// one that is not its own. Returns the variables that servers are started without.
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
                // Of a pair such as a cookie it is the value.
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

/// A secret from where secrets are kept. It is never printed.
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
                "there are two tokens",
                "name one of token_env and token_file",
            ));
        }
    };
    let text = text.trim().to_owned();
    if text.is_empty() {
        return Err(Problem::bad(place, "the token is empty", "an empty secret is none"));
    }
    Ok(Some(text))
}
