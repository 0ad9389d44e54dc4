//! The boundary is a handler itself: every method of the protocol is watched.

use std::borrow::Cow;
use std::time::Duration;

use faultwire_contract::{Answers, Aspect, Condition, Outcome, Report};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam,
    CompleteRequestParams, CompleteResult, CustomNotification, CustomRequest, CustomResult,
    DiscoverResult, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServerHandler};
use serde_json::Value;

use crate::boundary::Boundary;
use crate::boundary::answer::{Asked, FailedCall, Heard, judged};
use crate::boundary::slot::heard;
use crate::typed::TypedCode;
use crate::watch::{Ended, caught, observed, watch};

const TOOLS_CALL: &str = "tools/call";

/// Requests that are watched and otherwise left alone.
macro_rules! watched {
    ($($method:literal: $name:ident($params:ty) -> $result:ty;)+) => { $(
        async fn $name(
            &self,
            request: $params,
            context: RequestContext<RoleServer>,
        ) -> Result<$result, ErrorData> {
            let asked = Asked::of(&context, $method);
            let cancelled = context.ct.clone();
            let handler = heard(async move { self.inner.$name(request, context).await });
            self.settle(asked, watch(handler, self.settings.deadline, cancelled.cancelled()).await).await
        }
    )+ };
}

#[expect(deprecated, reason = "what the protocol calls deprecated is still spoken")]
impl<C: TypedCode, H: ServerHandler> ServerHandler for Boundary<C, H> {
    watched! {
        "initialize": initialize(InitializeRequestParams) -> InitializeResult;
        "completion/complete": complete(CompleteRequestParams) -> CompleteResult;
        "logging/setLevel": set_level(rmcp::model::SetLevelRequestParams) -> ();
        "prompts/get": get_prompt(GetPromptRequestParams) -> GetPromptResponse;
        "prompts/list": list_prompts(Option<PaginatedRequestParams>) -> ListPromptsResult;
        "resources/list": list_resources(Option<PaginatedRequestParams>) -> ListResourcesResult;
        "resources/templates/list":
            list_resource_templates(Option<PaginatedRequestParams>) -> ListResourceTemplatesResult;
        "resources/read": read_resource(ReadResourceRequestParams) -> ReadResourceResponse;
        "resources/subscribe": subscribe(SubscribeRequestParams) -> ();
        "resources/unsubscribe": unsubscribe(UnsubscribeRequestParams) -> ();
        "tools/list": list_tools(Option<PaginatedRequestParams>) -> ListToolsResult;
        "tasks/get": get_task(GetTaskParams) -> GetTaskResult;
        "tasks/update": update_task(UpdateTaskParams) -> ();
        "tasks/cancel": cancel_task(CancelTaskParams) -> ();
    }

    async fn ping(&self, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let asked = Asked::of(&context, "ping");
        let cancelled = context.ct.clone();
        let handler = heard(async move { self.inner.ping(context).await });
        self.settle(asked, watch(handler, self.settings.deadline, cancelled.cancelled()).await)
            .await
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let asked = Asked::of(&context, "server/discover");
        let cancelled = context.ct.clone();
        let handler = heard(async move { self.inner.discover(context).await });
        self.settle(asked, watch(handler, self.settings.deadline, cancelled.cancelled()).await)
            .await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut asked = Asked::of(&context, TOOLS_CALL);
        asked.tool = Some(request.name.to_string());
        let tool = match caught(|| self.inner.get_tool(&request.name)) {
            Ok(tool) => tool,
            Err(panic) => {
                let failed = panic.report::<C>().into();
                return Ok(self.told_as_result(&asked, failed).await.into());
            }
        };
        asked.is_known = tool.is_some();
        asked.turn = self.turn();
        asked.arguments = request.arguments.clone().map(Value::Object);
        asked.has_output_schema = tool.as_ref().is_some_and(|tool| tool.output_schema.is_some());
        asked.read_only = tool.as_ref().and_then(|tool| tool.annotations.as_ref()?.read_only_hint);
        asked.repeatable = tool.as_ref().is_some_and(is_repeatable);
        let against = tool
            .as_ref()
            .and_then(|tool| self.out_of_turn(&asked, tool).or_else(|| self.misfit(tool, &asked)));
        if let Some(failed) = against {
            return Ok(self.told_as_result(&asked, failed).await.into());
        }
        let cancelled = context.ct.clone();
        let handler = heard(async move { self.inner.call_tool(request, context).await });
        let ended = watch(handler, self.settings.deadline, cancelled.cancelled()).await;
        let failed = match judged::<C, _>(ended, &asked, Answers::ToolCall) {
            Ok((CallToolResponse::Complete(result), said)) => {
                let failed = Self::failure_in(&asked, &result, said);
                match failed.or_else(|| self.output_mismatch(tool.as_ref(), &result)) {
                    None => {
                        self.turn_over(&asked);
                        return Ok(self.dressed(&asked, result).into());
                    }
                    Some(failed) => failed,
                }
            }
            Ok((other, _)) => return Ok(other),
            Err(failed) => failed,
        };
        let failed = match &tool {
            Some(tool) => failed.with_issues(&self.schema(tool), &asked),
            None => failed.with_nearest(&asked, &self.manifest),
        };
        Ok(self.told_as_result(&asked, failed).await.into())
    }

    /// Requests that rmcp cannot parse arrive here, too, including tool calls.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == TOOLS_CALL {
            let asked = Asked::of(&context, TOOLS_CALL);
            let what = "tools/call needs the name of a tool, and arguments that are an object";
            let failed = observed::<C>(Condition::InvalidArguments, what);
            let told = self.told_as_result(&asked, failed.into()).await;
            return Ok(CustomResult::new(serde_json::to_value(told).unwrap_or_default()));
        }
        let asked = Asked::of(&context, "");
        let cancelled = context.ct.clone();
        let handler = heard(async move { self.inner.on_custom_request(request, context).await });
        self.settle(asked, watch(handler, self.settings.deadline, cancelled.cancelled()).await)
            .await
    }

    fn negotiate_initialize(
        &self,
        request: &InitializeRequestParams,
    ) -> Result<InitializeResult, ErrorData> {
        self.inner.negotiate_initialize(request)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.inner.supported_protocol_versions()
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.inner.accepted_subscription_filter(requested)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let asked = Asked::unasked("subscriptions/listen");
        // It continues for as long as the client listens.
        let handler = heard(async move { self.inner.listen(context).await });
        let ended = watch(handler, Duration::MAX, std::future::pending()).await;
        self.settle(asked, ended).await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.inner.get_tool(name)
    }

    fn get_info(&self) -> ServerConfig {
        self.inner.get_info()
    }

    async fn on_cancelled(
        &self,
        notification: CancelledNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        self.inner.on_cancelled(notification, context).await;
    }

    async fn on_progress(
        &self,
        notification: ProgressNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        self.inner.on_progress(notification, context).await;
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.inner.on_initialized(context).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.inner.on_roots_list_changed(context).await;
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        context: NotificationContext<RoleServer>,
    ) {
        self.inner.on_custom_notification(notification, context).await;
    }
}

impl<C: TypedCode, H: ServerHandler> Boundary<C, H> {
    /// The outcome of a request that is not a tool call.
    async fn settle<T>(&self, asked: Asked, ended: Ended<Heard<T>>) -> Result<T, ErrorData> {
        match judged::<C, _>(ended, &asked, Answers::Other) {
            Ok((value, _)) => Ok(value),
            Err(failed) => Err(self.told_as_error(&asked, failed).await),
        }
    }

    /// What is wrong with the arguments of a call (W4).
    fn misfit(&self, tool: &Tool, asked: &Asked) -> Option<FailedCall> {
        let schema = self.schema(tool);
        let misfit = match &asked.arguments {
            Some(arguments) => schema.misfit_of(arguments),
            None => schema.misfit(None),
        }?;
        let contract = C::contract();
        let condition = Condition::InvalidArguments;
        let aspect: Option<Aspect> = misfit.aspect();
        let name = &*tool.name;
        Some(
            Report {
                condition: Some(condition),
                message: Some(misfit.message(name)),
                hints: misfit.hints(),
                details: Some(misfit.details()),
                suggestion: Some(format!(
                    "Fix the arguments; see the inputSchema of {name} in tools/list"
                )),
                outcome: Some(Outcome::NotSent),
                ..Report::new(&contract.code_for(condition, aspect).id)
            }
            .into(),
        )
    }
}

/// Whether a tool only reads, or may run twice, as its annotations have it (A7).
fn is_repeatable(tool: &Tool) -> bool {
    let hints = tool.annotations.as_ref();
    hints.is_some_and(|hints| {
        hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true)
    })
}
