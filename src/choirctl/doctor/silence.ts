/** A second of silence as a WAV file, for a service that hears. */
const RATE = 8000
const HEADER_BYTES = 44

const wave = (): Uint8Array<ArrayBuffer> => {
  const bytes = Buffer.alloc(HEADER_BYTES + RATE * 2)
  bytes.write("RIFF", 0, "latin1")
  bytes.writeUInt32LE(bytes.length - 8, 4)
  bytes.write("WAVEfmt ", 8, "latin1")
  bytes.writeUInt32LE(16, 16)
  // PCM, one channel, 16 bits a sample.
  bytes.writeUInt16LE(1, 20)
  bytes.writeUInt16LE(1, 22)
  bytes.writeUInt32LE(RATE, 24)
  bytes.writeUInt32LE(RATE * 2, 28)
  bytes.writeUInt16LE(2, 32)
  bytes.writeUInt16LE(16, 34)
  bytes.write("data", 36, "latin1")
  bytes.writeUInt32LE(RATE * 2, 40)
  return Uint8Array.from(bytes)
}

export const SILENCE = wave()
