//! Unexpected failures of any kind, and four ways to build a failure from facts that are only known
//! at run time (K6).

use std::any::Any;
use std::error::Error;

use faultwire_contract::{Condition, Report, cause};
use serde_json::Value;

use crate::edge;
use crate::failure::Failure;
use crate::set::CodeSet;
use crate::typed::TypedCode;

/// Something that went wrong: an error, a text, a value, or a panic.
#[derive(Clone, Debug, Default)]
pub struct Unknown {
    message: Option<String>,
    /// Its own code, if it names one.
    code: Option<String>,
    cause: Option<Value>,
    condition: Option<Condition>,
}

impl<E: Error + 'static> From<E> for Unknown {
    fn from(error: E) -> Self {
        Self {
            message: Some(error.to_string()),
            cause: Some(cause::from_error(&error)),
            ..Self::default()
        }
    }
}

impl Unknown {
    /// A type-erased error.
    #[must_use]
    pub fn error(error: &(dyn Error + 'static)) -> Self {
        let (message, cause) = (Some(error.to_string()), Some(cause::from_dyn(error)));
        Self { message, cause, ..Self::default() }
    }

    /// A text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { cause: Some(Value::from(text.clone())), message: Some(text), ..Self::default() }
    }

    /// A value. Its code and message are found under the names that are usual for them.
    #[must_use]
    pub fn value(value: Value) -> Self {
        if let Value::String(text) = value {
            return Self::text(text);
        }
        let member = |names: &[&str]| {
            names.iter().find_map(|name| value.get(*name)?.as_str()).map(str::to_owned)
        };
        let message = member(&["message", "human_message", "error"]);
        let code = member(&["code", "error_code"]);
        Self { message, code, cause: Some(value), condition: None }
    }

    /// What a panic was thrown with.
    #[must_use]
    pub fn panic(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        let unknown = text.map(Self::text).unwrap_or_default();
        Self { condition: Some(Condition::Panic), ..unknown }
    }
}

/// Four ways to build a failure from facts that are only known at run time. The context is a
/// report, whose members are set by name and all kept; its code may be left out.
impl<C: TypedCode> Failure<C> {
    /// Makes a failure of any error. The error's own code is kept if it is registered; otherwise
    /// the code of the context is used, then the contract's code for the condition, then the
    /// fallback (K7).
    ///
    /// ```
    /// use faultwire::contract::Report;
    /// use faultwire::standard::{Code, Failure};
    ///
    /// let error = std::io::Error::other("disk on fire");
    /// let context = Report { tool: Some("read_file".into()), ..Code::Unavailable.into() };
    /// let failure = Failure::from_unknown(error, context);
    /// assert_eq!(failure.code(), Code::Unavailable);
    /// assert_eq!(failure.report().message.as_deref(), Some("disk on fire"));
    /// ```
    #[must_use]
    pub fn from_unknown(failure: impl Into<Unknown>, context: Report) -> Self {
        let contract = C::contract();
        let Unknown { message, code, cause, condition } = failure.into();
        let registered = |id: &str| C::from_id(id).map(C::id);
        let seen = condition.map(|condition| contract.code_for(condition, None).id.as_str());
        let code = code.as_deref().and_then(registered).or_else(|| registered(&context.code));
        let code = code.or(seen).unwrap_or(&contract.fallback().id).to_owned();
        Self::told(Report {
            code,
            message: context.message.or(message),
            cause: context.cause.or(cause),
            condition: context.condition.or(condition),
            stack: context.stack.or_else(|| edge::stack(contract)),
            ..context
        })
    }

    /// Makes a failure of an invariant that was violated. The code is the one in the context, or
    /// the contract's own for that.
    #[must_use]
    pub fn invariant_violation(invariant: impl Into<String>, context: Report) -> Self {
        let contract = C::contract();
        let code = C::from_id(&context.code).map_or(&*contract.invariant().id, C::id).to_owned();
        let stack = context.stack.or_else(|| edge::stack(contract));
        Self::told(Report { code, invariant: Some(invariant.into()), stack, ..context })
    }

    /// Makes a failure of a tool.
    #[must_use]
    pub fn tool_failure(code: C, context: Report) -> Self {
        let stack = context.stack.or_else(|| edge::stack(C::contract()));
        Self::told(Report { code: code.id().to_owned(), stack, ..context })
    }

    /// Makes a failure of the startup, when there is no tool yet.
    #[must_use]
    pub fn startup_failure(code: C, context: Report) -> Self {
        let condition = context.condition.or(Some(Condition::BootstrapFailed));
        let context = Report { tool: Some(STARTUP.to_owned()), condition, ..context };
        Self::tool_failure(code, context)
    }
}

/// The name of the startup, in place of a tool.
const STARTUP: &str = "startup";

/// The code is the contract's fallback, which every tool may answer.
impl<S: CodeSet, E: Error + 'static> From<E> for Failure<S> {
    fn from(error: E) -> Self {
        Self::told(Failure::<S::Code>::from_unknown(error, Report::default()).into_report())
    }
}

/// Gives errors a code on their way.
pub trait ResultExt<T, E> {
    /// The error is a failure of this code, with the error underneath.
    fn fault<C: TypedCode>(self, code: C) -> Result<T, Failure<C>>
    where
        E: Error + 'static;

    /// Converts the error with this function: an exhaustive `match` does not compile until a new
    /// case is mapped (W9).
    fn fault_with<S: CodeSet, F: Into<Failure<S>>>(
        self,
        make: impl FnOnce(E) -> F,
    ) -> Result<T, Failure<S>>;
}

impl<T, E> ResultExt<T, E> for Result<T, E> {
    fn fault<C: TypedCode>(self, code: C) -> Result<T, Failure<C>>
    where
        E: Error + 'static,
    {
        self.map_err(|error| Failure::from_unknown(Unknown::from(error), Report::new(code.id())))
    }

    fn fault_with<S: CodeSet, F: Into<Failure<S>>>(
        self,
        make: impl FnOnce(E) -> F,
    ) -> Result<T, Failure<S>> {
        self.map_err(|error| make(error).into())
    }
}
