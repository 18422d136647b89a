import { assert, describe, it } from "@effect/vitest"
import { LivingMap } from "#src/agent/arbiter/LivingMap.ts"

const JOBS = 1000
/** Jobs that run at a time. */
const RUNNING = 4

describe("a map of jobs", () => {
  it("holds no more than the running ones and a new one, however many there were", () => {
    const running = new Set<number>()
    const map = new LivingMap<number, string>((job) => running.has(job))
    for (let job = 0; job < JOBS; job++) {
      running.add(job)
      running.delete(job - RUNNING)
      map.set(job, `job ${job}`)
      assert.isAtMost(map.size, RUNNING)
      assert.strictEqual(map.get(job), `job ${job}`)
    }
    assert.isTrue(map.has(JOBS - RUNNING))
    assert.isFalse(map.has(JOBS - RUNNING - 1))
    assert.isTrue(map.delete(JOBS - 1))
    assert.isFalse(map.has(JOBS - 1))
  })
})
