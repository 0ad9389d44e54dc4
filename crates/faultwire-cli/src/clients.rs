//! `[[client]]`: which clients may call, with which token, and what they may use.

use std::collections::{BTreeSet, HashMap};

use faultwire_gateway::{ClientSettings, Rate, ScopeSettings};

use crate::config::{Client, Config};
use crate::problem::Problem;
use crate::secrets::secret;

/// All clients of the file.
pub fn clients(config: &Config) -> Result<Vec<ClientSettings>, Problem> {
    let rates = config.tool.iter().filter_map(|(name, tool)| Some((name.clone(), tool.rate?)));
    let tool_rates: HashMap<String, Rate> = rates.collect();
    let mut clients = Vec::new();
    let (mut names, mut tokens) = (BTreeSet::new(), BTreeSet::new());
    for (number, client) in config.client.iter().enumerate() {
        let place = |key: &str| config.place(&["client", &number.to_string(), key]);
        if client.name.is_empty() {
            let what = "the client has no name";
            return Err(Problem::bad(&place("name"), what, "give each client a name"));
        }
        if !names.insert(&client.name) {
            let what = format!("two clients are named {:?}", client.name);
            return Err(Problem::bad(&place("name"), what, "give each client a unique name"));
        }
        let key = if client.token_env.is_some() { "token_env" } else { "token_file" };
        let at = place(key);
        let token = secret(client.token_env.as_deref(), client.token_file.as_ref(), &at)?;
        if token.as_ref().is_some_and(|token| !tokens.insert(token.clone())) {
            let help = "give each client its own token";
            let what = format!("client {:?} has the same token as another client", client.name);
            return Err(Problem::bad(&at, what, help));
        }
        clients.push(ClientSettings {
            name: client.name.clone(),
            token,
            role: client.role.clone(),
            scope: scope(client, place)?,
            rate: client.rate,
            tool_rates: tool_rates.clone(),
            budget: client.budget,
        });
    }
    if clients.is_empty() && !tool_rates.is_empty() {
        clients.push(ClientSettings { tool_rates, ..ClientSettings::default() });
    }
    Ok(clients)
}

/// What a client may use. Patterns that would match something unexpected are refused.
fn scope(client: &Client, place: impl Fn(&str) -> String) -> Result<ScopeSettings, Problem> {
    let allowed = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
    let lists = [
        ("tools", "deny", allowed(&client.tools)),
        ("deny", "deny", client.deny.clone()),
        ("resources", "deny_resources", allowed(&client.resources)),
        ("deny_resources", "deny_resources", client.deny_resources.clone()),
        ("prompts", "deny_prompts", allowed(&client.prompts)),
        ("deny_prompts", "deny_prompts", client.deny_prompts.clone()),
    ];
    for (key, deny, patterns) in lists {
        for pattern in patterns {
            if let Some(what) = mistake(&pattern) {
                let help = format!(
                    "write one name or pattern per entry, such as \"read_*\"; \
                     exclude names with {deny} = [\"…\"]"
                );
                return Err(Problem::bad(&place(key), format!("{pattern:?} {what}"), help));
            }
        }
    }
    Ok(ScopeSettings {
        tools: client.tools.clone(),
        deny: client.deny.clone(),
        resources: client.resources.clone(),
        deny_resources: client.deny_resources.clone(),
        prompts: client.prompts.clone(),
        deny_prompts: client.deny_prompts.clone(),
    })
}

/// What is wrong with a pattern.
fn mistake(pattern: &str) -> Option<&'static str> {
    let cannot_be = |c: char| c.is_control() || c.is_whitespace() || "\"',;".contains(c);
    if pattern.is_empty() {
        Some("is empty and matches nothing")
    } else if pattern.starts_with('!') {
        Some("begins with !, which would match all other names")
    } else if pattern.contains(cannot_be) {
        Some("contains a character that no name can contain")
    } else if !is_closed(pattern) {
        Some("has an unclosed bracket")
    } else {
        None
    }
}

/// Whether every bracket of a pattern is closed; a pattern with an open one matches nothing.
fn is_closed(pattern: &str) -> bool {
    let mut open = None;
    let mut escaped = false;
    for c in pattern.chars() {
        match (c, open) {
            _ if escaped => escaped = false,
            ('\\', _) => escaped = true,
            ('[', None) => open = Some(']'),
            ('{', None) => open = Some('}'),
            (c, Some(close)) if c == close => open = None,
            _ => {}
        }
    }
    open.is_none() && !escaped
}
