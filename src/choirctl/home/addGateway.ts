/** `choirctl gateway add`: a bot in config.json, and its token in secrets.json. */
import { Effect, type Redacted, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { type ResourceName, SecretName } from "#schema/Ids.ts"
import { failed } from "#src/choirctl/terminal/failure.ts"
import { configPath } from "#src/choirctl/terminal/root.ts"
import { decodeFile } from "#src/shared/config/decode.ts"
import { aloneWithFiles } from "#src/shared/files/homeFilesLock.ts"
import { fileText, readConfigText, writePrivate } from "./homeFiles.ts"
import { setSecret } from "./secretsFile.ts"

/** A bot of config.json, with the dotted paths that are new there. */
export interface AddedGateway {
  readonly name: ResourceName
  readonly secret: SecretName
  readonly added: ReadonlyArray<string>
}

const Section = Schema.Record(Schema.String, Schema.MutableJson)

const write = Effect.fnUntraced(function* (
  home: string,
  name: ResourceName,
  secret: SecretName,
  api_root: string | undefined
) {
  const path = configPath(home)
  const written = yield* readConfigText(home)
  const gateways = Schema.is(Section)(written["gateways"]) ? written["gateways"] : {}
  if (Object.hasOwn(gateways, name))
    return yield* failed("GATEWAY_EXISTS", `config.json has a gateway ${name} already`, "choose another name")
  const entry = { type: "telegram", secret, ...(api_root === undefined ? {} : { api_root }) }
  const text = fileText({ ...written, gateways: { ...gateways, [name]: entry } })
  yield* decodeFile(Config)(path, text)
  yield* writePrivate(path, text)
})

/** Stores the token first, so that config.json never names a secret without a value. */
export const addGateway = Effect.fn("addGateway")(function* (
  home: string,
  name: ResourceName,
  token: Redacted.Redacted,
  api_root: string | undefined
) {
  const secret = SecretName.make(`${name}-token`)
  yield* setSecret(home, secret, token)
  yield* aloneWithFiles(home)(write(home, name, secret, api_root))
  return { name, secret, added: [`gateways.${name}`, `secrets.${secret}`] } satisfies AddedGateway
})
