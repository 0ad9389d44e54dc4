//! `wrap`: one server behind the contract, for a client on stdin and stdout.

use std::io;
use std::path::Path;

use faultwire_contract::Masks;
use faultwire_gateway::{Launch, Settings, WrapError, wrap};

use crate::args::wrap::WrapArgs;
use crate::config::Config;
use crate::problem::Problem;
use crate::{Done, edge, secrets, server_name, snippet, treatment};

pub fn run(args: &WrapArgs) -> Result<Done, Problem> {
    // Who only asks for settings to paste is a person.
    let is_run = args.print_config.is_none();
    prepared(args).map_err(|problem| if is_run { problem.at_start() } else { problem })?.run(args)
}

/// What a server is wrapped with.
struct Prepared {
    config: Config,
    name: String,
    settings: Settings,
}

fn prepared(args: &WrapArgs) -> Result<Prepared, Problem> {
    let config = Config::read(args.treatment.config.as_deref())?;
    let name = match (&args.name, &config.name) {
        (Some(name), _) => server_name::given(name, "--name")?,
        (None, Some(name)) => server_name::given(name, &config.place(&["name"]))?,
        (None, None) => server_name::of(&args.command),
    };
    let settings = treatment::settings(&args.treatment, &config, Masks::LOCAL)?;
    // A level that is none is told before anything else happens.
    treatment::level(&args.treatment, &config)?;
    Ok(Prepared { config, name, settings })
}

impl Prepared {
    fn run(self, args: &WrapArgs) -> Result<Done, Problem> {
        let Self { config, name, settings } = self;
        if let Some(client) = args.print_config {
            edge::print(snippet::of(client, &name, args)?.as_bytes())?;
            return Ok(Done::Fine);
        }
        edge::tell(treatment::level(&args.treatment, &config)?);
        let (log, dir) = treatment::open_log(&args.treatment, &config, "wrap", &name)?;
        tracing::info!(contract = settings.contract.name, audit = %dir.display(), "wrapping {name}");
        // A file that `serve` uses, too, may name secrets.
        let withheld = secrets::named(&config);
        let launch = Launch { withheld, ..args.command.clone().into() };
        let wrapped = wrap(settings, &log, launch, edge::streams()?);
        let closed = log.close();
        wrapped.map_err(|e| match &e {
            WrapError::Start { command, error } => Problem::Startup {
                place: command.to_string_lossy().into_owned(),
                what: format!("it cannot be started: {error}"),
                help: help(Path::new(command), error).to_owned(),
            },
            WrapError::System(_) => Problem::Startup {
                place: name,
                what: e.to_string(),
                help: "free some processes or open files".to_owned(),
            },
        })?;
        Ok(if closed.is_ok() { Done::Fine } else { Done::Findings })
    }
}

/// What to do about a program that cannot be started.
fn help(program: &Path, error: &io::Error) -> &'static str {
    match error.kind() {
        _ if program.is_dir() => "this is a directory; name the program in it, after --",
        io::ErrorKind::NotFound if program.is_file() => {
            "the file is there, but what its first line (#!) names is not"
        }
        io::ErrorKind::NotFound => "name a program that is on the PATH, or its path, after --",
        io::ErrorKind::PermissionDenied => {
            "make it executable (chmod +x), or name the program that runs it before it"
        }
        _ if program.is_file() => "it is no program; name the one that runs it before it",
        _ => "name a program that is on the PATH, or its path, after --",
    }
}
