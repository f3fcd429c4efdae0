import { parseJson } from '../../src/json.ts';
import type { Io } from '../command.ts';

/** Returns an `Io` that prints each JSON document of a command as YAML, for `-o yaml`; several are separated by `---`. */
export async function yamlOutput(io: Io): Promise<Io> {
  const { stringify } = await import('yaml');
  let printed = false;
  return Object.create(io, {
    out: {
      value(data: string | Uint8Array) {
        const document = typeof data === 'string' ? parseJson(data) : undefined;
        if (document === undefined) return io.out(data);
        io.out(`${printed ? '---\n' : ''}${stringify(document, { lineWidth: 0 })}`);
        printed = true;
      },
    },
  });
}
