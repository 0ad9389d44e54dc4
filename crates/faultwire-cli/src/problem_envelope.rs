//! An error of a command as an envelope of its contract.

use std::sync::Arc;

use faultwire_contract::{
    Condition, Contract, DEFAULT, Fault, FaultError, Profile, Report, Surface, builtin,
};

use crate::problem::Problem;
use crate::{edge, resolve};

/// The envelope of the command's contract, or of the default one.
pub fn envelope(problem: &Problem, contract: Option<&str>) -> String {
    let named = contract.and_then(|name| resolve::contract(name).ok());
    let Some(contract) = named.or_else(|| builtin(DEFAULT)) else { return problem.for_people() };
    let made = match problem {
        Problem::Audit(error) => error.fault(&contract, &edge::stamp(&contract)),
        _ => fault(problem, &contract),
    };
    match made {
        Ok(fault) => {
            let bytes = fault.envelope(Surface::Mcp, Profile::default());
            format!("{}\n", String::from_utf8_lossy(&bytes))
        }
        Err(e) => format!("{e}\n"),
    }
}

fn fault(problem: &Problem, contract: &Arc<Contract>) -> Result<Fault, FaultError> {
    let condition = match problem {
        Problem::Bad { .. } | Problem::Contract(_) | Problem::File(..) => {
            Condition::InvalidArguments
        }
        Problem::Startup { .. } => Condition::BootstrapFailed,
        _ => Condition::Internal,
    };
    let help = problem.help().map(|help| format!(" ({help})")).unwrap_or_default();
    let report = Report {
        condition: Some(condition),
        message: Some(format!("{problem}{help}")),
        suggestion: problem.help().map(str::to_owned),
        tool: problem.is_startup().then(|| "startup".to_owned()),
        ..Report::new(&contract.code_for(condition, None).id)
    };
    Fault::new(contract, report, &edge::stamp(contract))
}
