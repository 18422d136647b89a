/** The flags that describe a model: those of `choirctl model add`, and with a prefix those of `choirctl init`. */
import { Effect, Option } from "effect"
import { Flag } from "effect/cli"
import { usageError } from "#src/choirctl/terminal/failure.ts"

/** The same flags, each named `--<prefix>…`. */
export const modelFlags = (prefix: "" | "model-") =>
  ({
    endpoint: Flag.String(`${prefix}endpoint`).pipe(
      Flag.withDescription("Base URL of a custom API, ending in /v1"),
      Flag.withMetavar("<url>"),
      Flag.optional
    ),
    api: Flag.Literals(`${prefix}api`, ["chat", "responses", "messages"]).pipe(
      Flag.withDescription("API of the endpoint; chosen automatically for the listed providers"),
      Flag.optional
    ),
    price_in: Flag.Finite(`${prefix}price-in`).pipe(
      Flag.withDescription("The model's price in USD per million input tokens"),
      Flag.withMetavar("<usd>"),
      Flag.optional
    ),
    price_out: Flag.Finite(`${prefix}price-out`).pipe(
      Flag.withDescription("The model's price in USD per million output tokens"),
      Flag.withMetavar("<usd>"),
      Flag.optional
    )
  }) as const

interface Prices {
  readonly price_in: Option.Option<number>
  readonly price_out: Option.Option<number>
}

/** The price that the flags give, in USD per million tokens. One part without the other is refused. */
export const givenPrice = (prefix: "" | "model-", { price_in, price_out }: Prices) => {
  if (Option.isNone(price_in) && Option.isNone(price_out)) return Effect.undefined
  return Option.isSome(price_in) && Option.isSome(price_out)
    ? Effect.succeed({ input: price_in.value, output: price_out.value })
    : Effect.fail(usageError("a price has two parts", `give both --${prefix}price-in and --${prefix}price-out`))
}
