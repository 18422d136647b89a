/** What can go wrong between a bot and the Telegram double. */
import type { ServerResponse } from "node:http"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { type ApiReply, refuse } from "./telegramMethods.ts"

/**
 * What happens to a call instead of the usual: an answer of its own, a late one, silence, or a cut connection. With `accepted` the
 * call takes effect first, as when a timeout strikes after Telegram has taken a message.
 */
export type Fault =
  | { readonly kind: "reply"; readonly reply: ApiReply }
  | { readonly kind: "page"; readonly status: number; readonly html: string }
  | { readonly kind: "silence" | "cut"; readonly accepted: boolean }
  | { readonly kind: "late"; readonly accepted: boolean; readonly until: Effect.Effect<unknown> }

const replying = (reply: ApiReply): Fault => ({ kind: "reply", reply })

/** 429 with the seconds to wait. */
export const tooManyRequests = (retry_after: number): Fault =>
  replying({
    ok: false,
    error_code: 429,
    description: `Too Many Requests: retry after ${retry_after}`,
    parameters: { retry_after }
  })

/** 403: the user has blocked the bot. */
export const blocked: Fault = replying(refuse(403, "Forbidden: bot was blocked by the user"))

/** 400 in these words of Telegram's. */
export const badRequest = (reason: string): Fault => replying(refuse(400, `Bad Request: ${reason}`))

/** 403 in these words of Telegram's. */
export const forbidden = (reason: string): Fault => replying(refuse(403, `Forbidden: ${reason}`))

/** 400: the person has never written to the bot. */
export const unknownChat: Fault = replying(refuse(400, "Bad Request: chat not found"))

/** 403: the group has put the bot out. */
export const kicked: Fault = replying(refuse(403, "Forbidden: bot was kicked from the group chat"))

/** 400: Telegram does not take what was sent, whatever its kind. */
export const refusedContent: Fault = replying(refuse(400, "Bad Request: can't parse entities"))

/** 400: the group has become a supergroup with another id. */
export const migrated = (to: number): Fault =>
  replying({
    ok: false,
    error_code: 400,
    description: "Bad Request: group chat was upgraded to a supergroup chat",
    parameters: { migrate_to_chat_id: to }
  })

/** 500 in the words of the Bot API. */
export const serverError: Fault = replying(refuse(500, "Internal Server Error"))

/** 409: someone else polls with the same token. */
export const conflict: Fault = replying(refuse(409, "Conflict: terminated by other getUpdates request"))

/** 401: the token was revoked. */
export const unauthorized: Fault = replying(refuse(401, "Unauthorized"))

/** 502 with a page that is no JSON, as a proxy in front of Telegram sends it. */
export const badGateway: Fault = { kind: "page", status: 502, html: "<html>502 Bad Gateway</html>" }

/** No answer, and no effect. */
export const silence: Fault = { kind: "silence", accepted: false }

/** No answer although the call took effect: the caller cannot know. */
export const silenceAfterAccept: Fault = { kind: "silence", accepted: true }

/** A cut connection before the call took effect. */
export const cut: Fault = { kind: "cut", accepted: false }

/** A cut connection after the call took effect. */
export const cutAfterAccept: Fault = { kind: "cut", accepted: true }

/** The usual answer to a call that took effect at once, but only when this ends; it is interrupted when the caller hangs up. */
export const lateAfterAccept = (until: Effect.Effect<unknown>): Fault => ({ kind: "late", accepted: true, until })

/** The same for a call that takes effect only then. */
export const late = (until: Effect.Effect<unknown>): Fault => ({ kind: "late", accepted: false, until })

export const respondWith = (reply: ApiReply) =>
  HttpServerResponse.jsonUnsafe(reply, { status: reply.ok ? 200 : reply.error_code })

/** Lets `fault` strike a call whose usual course is `work`. */
export const suffer = Effect.fnUntraced(function* (fault: Fault, work: Effect.Effect<ApiReply>) {
  if (fault.kind === "reply") return respondWith(fault.reply)
  if (fault.kind === "page") {
    return HttpServerResponse.text(fault.html, { status: fault.status, contentType: "text/html" })
  }
  if (fault.kind === "late" && !fault.accepted) yield* fault.until
  const reply = fault.accepted || fault.kind === "late" ? yield* work : undefined
  if (fault.kind === "late" && fault.accepted) yield* fault.until
  if (fault.kind === "late" && reply !== undefined) return respondWith(reply)
  if (fault.kind === "cut") {
    const response = NodeHttpServerRequest.toServerResponse(yield* HttpServerRequest.HttpServerRequest)
    ;(response as ServerResponse).socket?.destroy()
  }
  return yield* Effect.never
})
