import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/database-setup.ts", "test/support/bundles-setup.ts"],
    testTimeout: 30_000
  }
})
