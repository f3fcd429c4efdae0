import { existsSync } from 'node:fs';
import { attacks } from './attacks.ts';
import { documents, planTime } from './documents.ts';
import { drift } from './drift.ts';
import { events } from './events.ts';
import { fleet } from './fleet.ts';
import { goClient } from './go-client.ts';
import { history } from './history.ts';
import { idle } from './idle.ts';
import { machine } from './machine.ts';
import type { Result } from './measure.ts';
import { ports } from './ports.ts';
import { returns } from './returns.ts';
import { memory, standaloneTool, startService, startUp, TOOL } from './service.ts';
import { snapshot } from './snapshot.ts';

const PROFILE = 'examples/moby.yaml';

/** Rounds of machines: each boots some five times. */
const MACHINE_ROUNDS = 3;
const PORT_ROUNDS = 20;
const ATTACK_ROUNDS = 5;

/**
 * `npm run bench [-- --json] [-- --quick]`: every ratio with its aim; with `--machine` those of virtual machines instead, which take many
 * minutes and want an image, and with `--ports`, `--idle` or `--attacks` only those of forwarded ports, idle machines, or a service under attack. Exits 0 also when an aim is missed: it measures.
 */
async function main(args: readonly string[]): Promise<void> {
  if (!existsSync(TOOL)) throw new Error('dist/ is missing: run npm run build first');
  const quick = args.includes('--quick');
  const rounds = (full: number) => (quick ? Math.max(2, Math.round(full / 10)) : full);
  const results: Result[] = [];
  const note = (lines: Result[]) => {
    results.push(...lines);
    for (const line of lines)
      process.stderr.write(`${line.name}: ${line.ratio} (${line.aim.sign} ${line.aim.value})\n`);
  };
  const isMachine = args.includes('--machine');
  if (isMachine) note(await machine(quick ? 1 : MACHINE_ROUNDS));
  if (isMachine || args.includes('--idle')) note(await idle(quick ? 1 : MACHINE_ROUNDS));
  if (args.includes('--attacks')) note(await attacks(PROFILE, rounds(ATTACK_ROUNDS)));
  else if (isMachine || args.includes('--ports')) note(await ports(rounds(PORT_ROUNDS)));
  else if (!args.includes('--idle')) await withoutMachine(note, rounds);
  if (args.includes('--json')) console.log(JSON.stringify(results, undefined, 2));
  else print(results);
}

async function withoutMachine(note: (lines: Result[]) => void, rounds: (full: number) => number): Promise<void> {
  {
    await using service = await startService(PROFILE);
    note(await startUp(service, PROFILE, rounds(40)));
  }
  const standalone = standaloneTool();
  if (standalone) {
    await using service = await startService(PROFILE, standalone);
    note(await startUp(service, PROFILE, rounds(40), standalone));
    note(await goClient(service, rounds(40), standalone));
  } else process.stderr.write('one file: not measured, because npm run dist has not made it\n');
  note(await documents(rounds(20)));
  note(await planTime(rounds(40)));
  note(await fleet(rounds(20)));
  note(await snapshot(rounds(10)));
  note(await returns(rounds(5)));
  note(await history(rounds(600)));
  note(await events(PROFILE, rounds(40)));
  note(await drift(PROFILE, rounds(40)));
  note(await memory(PROFILE, rounds(10)));
}

function print(results: readonly Result[]): void {
  console.log('| what | compared | ratio | aim | met | subject | reference |');
  console.log('| --- | --- | ---: | ---: | --- | ---: | ---: |');
  for (const line of results) {
    const aim = `${line.aim.sign} ${line.aim.value}`;
    const figure = (value: number) => `${value >= 100 ? Math.round(value) : value.toFixed(1)} ${line.unit}`;
    console.log(
      `| ${line.name} | ${line.compared} | ${line.ratio} | ${aim} | ${line.met ? 'yes' : 'no'} | ${figure(line.subject)} | ${figure(line.reference)} |`,
    );
  }
}

await main(process.argv.slice(2));
