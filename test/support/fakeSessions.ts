/** Sessions and the orders to them as the fake choird answers for them. */
import { Effect, Stream } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { OperatorApi } from "#schema/OperatorApi.ts"
import type { ApiError } from "#schema/ApiError.ts"
import type { Answers, Call } from "./fakeChoird.ts"

/** @param noted keeps the call and answers it. */
export const fakeSessions = (
  noted: <A>(call: Call, answer: Effect.Effect<A, ApiError>) => Effect.Effect<A, ApiError>,
  answers: Answers
) =>
  HttpApiBuilder.group(OperatorApi, "sessions", (handlers) =>
    Effect.succeed(
      handlers.handleAll({
        list: ({ query }) => noted({ name: "sessions", input: query }, answers.sessions),
        events: ({ params, query }) =>
          Effect.map(noted({ name: "events", id: params.id, input: query }, answers.events), Stream.fromIterable),
        context: ({ params, query }) => noted({ name: "context", id: params.id, input: query }, answers.context),
        cores: ({ params }) => noted({ name: "cores", id: params.id }, answers.cores),
        cancel: ({ params, payload }) =>
          noted(
            { name: "cancel", id: params.id, input: payload },
            Effect.map(answers.signal, (signal) => ({ job_name: payload.job_name ?? ("research" as never), ...signal }))
          ),
        startSkill: ({ params, payload }) =>
          noted(
            { name: "startSkill", id: params.id, input: payload },
            Effect.map(answers.signal, (signal) => ({ job_name: "run-tidy" as never, ...signal }))
          ),
        cancelSkill: ({ params, payload }) =>
          noted({ name: "cancelSkill", id: params.id, input: payload }, answers.signal),
        stopTurn: ({ params, payload }) => noted({ name: "stopTurn", id: params.id, input: payload }, answers.signal),
        inject: ({ params, payload }) => noted({ name: "inject", id: params.id, input: payload }, answers.signal),
        answer: ({ params, payload }) => noted({ name: "answer", id: params.id, input: payload }, answers.signal),
        compact: ({ params, payload }) => noted({ name: "compact", id: params.id, input: payload }, answers.signal),
        renew: ({ params, payload }) =>
          noted(
            { name: "renew", id: params.id, input: payload },
            Effect.map(answers.signal, (signal) => ({ closed: params.id, session_id: null, ...signal }))
          ),
        verify: ({ params }) => noted({ name: "verify", id: params.id }, answers.verify)
      })
    )
  )
