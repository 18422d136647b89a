import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { bindableSecrets, resourceSecrets } from "#src/shared/config/resourceSecrets.ts"
import { example } from "../../support/invalidConfigs.ts"

const decode = Schema.decodeUnknownSync(Config)

/** A resource of each kind, each with a secret of its own and, where it has one, with an address. */
const config = decode({
  ...example,
  stt: { ears: { ...example.stt.ears, secret: "ears-key" } },
  embedding: { ...example.embedding, secret: "embedding-key" },
  telemetry: {
    otlp: { endpoint: "https://collector.example.com", secret: "otlp-key" },
    prometheus: { listen: "127.0.0.1:9464", secret: "metrics-key" }
  },
  gateways: { telegram: { type: "telegram", secret: "telegram-token" } },
  dms: {},
  agents: {},
  postgres: { host: "db.example.com", database: "choir", secret: "db-password" }
})

/** The place of every value that stands at a key of this name. */
const placesOf = (name: RegExp, value: unknown, path: ReadonlyArray<string> = []): ReadonlyArray<string> =>
  typeof value !== "object" || value === null
    ? []
    : Object.entries(value).flatMap(([key, inner]) =>
        typeof inner === "string" && name.test(key) ? [[...path, key].join(".")] : placesOf(name, inner, [...path, key])
      )

describe("the resources that may name a secret", () => {
  it("are all there, with the address that the secret is sent to", () => {
    const found = resourceSecrets(config)
    const secrets = found.flatMap(({ path, secret }) => (secret === undefined ? [] : [path.join(".")]))
    assert.deepStrictEqual(secrets.toSorted(), placesOf(/^(?:url_)?secret$/u, config).toSorted())
    const addresses = found.flatMap(({ endpoint }) => (endpoint === undefined ? [] : [endpoint.path.join(".")]))
    assert.deepStrictEqual(addresses.toSorted(), placesOf(/^(?:endpoint|api_root)$/u, config).toSorted())
  })

  it("are in every part of the configuration that has a key for one", () => {
    const { schema } = Schema.toJsonSchemaDocument(Config)
    const sections = Object.entries(schema["properties"] as object).flatMap(([section, inner]) =>
      /"(?:\w+_)?secret":\{/u.test(JSON.stringify(inner)) ? [section] : []
    )
    assert.deepStrictEqual(
      [...new Set(resourceSecrets(config).map(({ path }) => path[0] ?? ""))].toSorted(),
      sections.toSorted()
    )
  })

  it("give an agent's bindings no secret of a gateway, the database or the host", () => {
    const given = bindableSecrets(config)
    for (const secret of ["openrouter-key", "elevenlabs-key", "git-dev-token", "notion-work-key", "email-notify-creds"])
      assert.isTrue(given.has(secret), secret)
    for (const secret of ["telegram-token", "db-password", "metrics-key", "otlp-key", "embedding-key", "ears-key"])
      assert.isFalse(given.has(secret), secret)
  })
})
