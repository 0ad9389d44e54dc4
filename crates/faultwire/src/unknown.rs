//! Failures that nobody foresaw, whatever they are, and the four ways to make one of what is known
//! only when it happens (K6).

use std::any::Any;
use std::error::Error;

use faultwire_contract::{Condition, Report, cause};
use serde_json::Value;

use crate::edge;
use crate::failure::Failure;
use crate::typed::TypedCode;

/// Something that went wrong: an error, a text, a value, or a panic.
#[derive(Clone, Debug, Default)]
pub struct Unknown {
    message: Option<String>,
    /// A code of its own, if it names one.
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
    /// An error whose type is not known any more.
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

/// The four ways to make one of what is known only when it happens. The context is a report, told
/// by names, and keeps everything that it names; its code may be left out.
impl<C: TypedCode> Failure<C> {
    /// Makes a failure of anything that went wrong. Its own code is kept if it has one that is
    /// registered; else it is the one in the context; else the contract's code for what was seen,
    /// or its fallback (K7).
    ///
    /// ```
    /// use faultwire::contract::Report;
    /// use faultwire::kaiza::{Code, Failure};
    ///
    /// let error = std::io::Error::other("disk on fire");
    /// let context = Report { tool: Some("read_file".into()), ..Code::FileReadFailed.into() };
    /// let failure = Failure::from_unknown(error, context);
    /// assert_eq!(failure.code(), Code::FileReadFailed);
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

    /// Makes a failure of the start, where there is no tool yet.
    #[must_use]
    pub fn startup_failure(code: C, context: Report) -> Self {
        let condition = context.condition.or(Some(Condition::BootstrapFailed));
        let context = Report { tool: Some(STARTUP.to_owned()), condition, ..context };
        Self::tool_failure(code, context)
    }
}

/// What stands where a tool would.
const STARTUP: &str = "startup";
