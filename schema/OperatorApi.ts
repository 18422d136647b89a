/**
 * The API of choird for operators, on `socks/choird.sock` alone (D10). Shapes are the ones `choirctl --json` prints
 * (docs/operating.md); names are snake_case, as in config.json and the tables.
 */
import { HttpApi } from "effect/http-api"
import { AgentsApi, SkillApi, UpdateApi } from "./AgentsApi.ts"
import { Approvals } from "./ApprovalsApi.ts"
import { ChatApi } from "./ChatApi.ts"
import { Configuration } from "./ConfigApi.ts"
import { DmsApi } from "./DmsApi.ts"
import { PlansApi } from "./PlansApi.ts"
import { MemoryApi } from "./MemoryApi.ts"
import { SchemaErrors } from "./SchemaErrors.ts"
import { RunsApi } from "./RunsApi.ts"
import { ResumeApi, SessionDetailApi, SessionsApi } from "./SessionsApi.ts"
import { AuditApi, DatabaseApi, RetentionApi, SystemApi, WorkspaceApi } from "./SystemApi.ts"

export class OperatorApi extends HttpApi.make("choir-operator")
  .add(
    SystemApi,
    DatabaseApi,
    AgentsApi,
    SessionsApi,
    UpdateApi,
    SessionDetailApi,
    ResumeApi,
    SkillApi,
    RunsApi,
    ChatApi,
    Approvals,
    Configuration,
    AuditApi,
    WorkspaceApi,
    RetentionApi,
    MemoryApi,
    DmsApi,
    PlansApi
  )
  .middleware(SchemaErrors)
  .annotate(HttpApi.PayloadParseOptions, { errors: "all", onExcessProperty: "error" }) {}
