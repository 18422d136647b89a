/**
 * What payloads have in common, as canonical text: a stored block refers to it (`storedPayload.ts`). It is never changed, since every
 * block that was written with it is read with it; another one takes another first byte.
 */
export const PAYLOAD_DICTIONARY = [
  `{"attachments":[{"bytes":1,"mime":"application/octet-stream","name":"","path":"inbox/"}],"dm":"me","inbox_id":"1","text":"`,
  `{"budgets":{"max_injections":20,"max_steps":60,"max_tool_calls":200,"wall_time_ms":1800000},"job_id":"`,
  `"job_name":"","model":"","start":{"context_bundle":{"constraints":[],"excerpts":[],"facts":[]},"job_id":"`,
  `"output_schema":{"properties":{},"type":"object"},"task_spec":"","tool_constraints":{"allowed_tools":[],"time_budget_ms":0}}}`,
  `{"job_id":"","outcome":"completed","result":null,"summary":"","usage":{"cost_usd":0.0,"input_tokens":10,"output_tokens":1}}`,
  `{"content":"","refused":"","signal_id":"","source":"control_plane","target":"core:"}{"by":"operator","reason":"","target":"edge","turn":1}`,
  `{"boundary_rev":1,"delta":{"add_fact":{"key":"","source_event":"","value":""},"add_references":[],"mode":"append","summary_update":"`,
  `{"from":"","input":{},"on":"","output":{},"skill":"","step":1,"to":""}{"action":"insert","call_id":"","document_id":"","key":"","store":"`,
  `{"in_reply_to":"1","kind":"notice","text":"{"in_reply_to":"1","kind":"report","text":"{"in_reply_to":"1","kind":"reply","text":"`,
  `{"allowed":{"tools":["choir.exec","choir.core.spawn","choir.core.report","choir.memory.query","choir.fs.search"],"transitions":[]},`,
  `"artifact_ref":"","status":"rejected","summary":"","status":"error","summary":"","status":"timeout","status":"cancelled"}`,
  `{"call_id":"","error":{"kind":"unreachable","message":"","retry_after_ms":1000,"status":500},"finish_reason":"stop","latency_ms":1`,
  `,"model":"","purpose":"report","text":"","tool_calls":[{"call_id":"","input":{"command":"","timeout_ms":60000},"name":"choir-exec"},`,
  `{"call_id":"","input":{"content":"","mode":"overwrite","path":""},"name":"choir-fs-write"},{"call_id":"`,
  `"finish_reason":"tool_calls","latency_ms":1,"model":"","purpose":"turn","tool_calls":[{"call_id":"`,
  `","input":{"path":""},"name":"choir-fs-read"}],"usage":{"cost_usd":0.0,"input_tokens":1,"output_tokens":1}}`,
  `{"approval_id":"1","call_id":"","dirty":true,"effect":"external","input":{"command":"`,
  `"},"locks":[{"mode":"X","resource":"workspace"}],"tool":"choir.exec"}","effect":"workspace","input":{"content":"`,
  `"locks":[{"mode":"X","resource":"file:/workspace/"}],"tool":"choir.fs.write"}`,
  `-0","effect":"none","input":{"path":"","locks":[{"mode":"S","resource":"file:/workspace/"}],"tool":"choir.fs.read"}`,
  `{"call_id":"-1-1-0","duration_ms":1,"output":{"exit_code":0,"stderr":"","stdout":"","truncated":false},"reads":[],"status":"success"`,
  `,"untrusted":true,"writes":[{"after":"","before":"","path":"{"call_id":"","locks":[]}{"call_id":"-1-1-0","duration_ms":0,"output":{"`,
  `"content":"","lines":"","path":"","truncated":false},"reads":[{"path":"","sha256":"`,
  `"}],"status":"success","summary":""}`
].join("")
