//! `wrap`: one server behind the contract, for a client on stdin and stdout.

use faultwire_gateway::{WrapError, wrap};

use crate::args::wrap::WrapArgs;
use crate::config::Config;
use crate::problem::Problem;
use crate::{Done, edge, server_name, snippet, treatment};

pub fn run(args: &WrapArgs) -> Result<Done, Problem> {
    let config = Config::read(args.treatment.config.as_deref())?;
    let name = match (&args.name, &config.name) {
        (Some(name), _) => server_name::given(name, "--name")?,
        (None, Some(name)) => server_name::given(name, &config.place(&["name"]))?,
        (None, None) => server_name::of(&args.command),
    };
    if let Some(client) = args.print_config {
        edge::print(snippet::of(client, &name, args)?.as_bytes())?;
        return Ok(Done::Fine);
    }
    edge::tell(treatment::level(&args.treatment, &config)?);
    let settings = treatment::settings(&args.treatment, &config)?;
    let (log, _) = treatment::open_log(&args.treatment, &config, "wrap", &name)?;
    let wrapped = wrap(settings, &log, &args.command, edge::streams()?);
    let closed = log.close();
    wrapped.map_err(|e| match &e {
        WrapError::Start { command, .. } => Problem::Startup {
            place: command.to_string_lossy().into_owned(),
            what: e.to_string(),
            help: "name a program that is on the PATH, after --".to_owned(),
        },
        WrapError::System(_) => Problem::Startup {
            place: name,
            what: e.to_string(),
            help: "free some processes or open files".to_owned(),
        },
    })?;
    Ok(if closed.is_ok() { Done::Fine } else { Done::Findings })
}
