import fc from 'fast-check';
import { cannotMount } from '../../helpers/full-disk.ts';

/** What comes between an apply and its end. */
export type Deed =
  | 'nothing'
  | 'set'
  | 'set other'
  | 'put'
  | 'power'
  | 'rollback'
  | 'apply'
  | 'engine ends'
  | 'shutdown'
  | 'stop'
  | 'kill'
  | 'full disk'
  | 'file in the way';

/** `inside`: the service runs in this process and changes files of a user. */
export type Kind = 'inside' | 'program';

export interface Round {
  engine: 'moby' | 'containerd';
  memory: number;
  extension: '1.0.0' | '1.1.0' | undefined;
  meanwhile: Deed;
  /** From when on `afterMs` counts: the command, or its write. */
  since: 'command' | 'write';
  afterMs: number;
  /** The same once more. */
  twice: boolean;
}

/** One home, what it begins with, and what happens there. */
export interface Story {
  kind: Kind;
  begin: 'empty' | 'earlier' | 'small disk';
  /** Which home of an earlier release, where it begins with one. */
  earlier: number;
  rounds: Round[];
}

const DEEDS = ['nothing', 'set', 'set other', 'put', 'power', 'rollback', 'apply', 'engine ends', 'shutdown', 'stop'];
const MORE: Readonly<Record<Kind, readonly string[]>> = { inside: ['file in the way'], program: ['kill', 'kill'] };

function roundArbitrary(deeds: readonly string[]): fc.Arbitrary<Round> {
  return fc.record({
    engine: fc.constantFrom('moby', 'containerd'),
    memory: fc.integer({ min: 2, max: 4 }),
    extension: fc.constantFrom(undefined, undefined, '1.0.0', '1.1.0'),
    meanwhile: fc.constantFrom(...(deeds as Deed[])),
    since: fc.constantFrom('command', 'write', 'write'),
    afterMs: fc.integer({ min: 0, max: 160 }),
    twice: fc.integer({ min: 0, max: 3 }).map((of) => of === 3),
  });
}

export function storyArbitrary(kind: Kind): fc.Arbitrary<Story> {
  const begins: Story['begin'][] = ['empty', 'earlier', ...(cannotMount() ? [] : ['small disk' as const])];
  return fc.constantFrom(...begins).chain((begin) => {
    const deeds = [...DEEDS, ...MORE[kind], ...(begin === 'small disk' ? ['full disk', 'full disk'] : [])];
    return fc.record({
      kind: fc.constant(kind),
      begin: fc.constant(begin),
      earlier: fc.nat({ max: 999 }),
      rounds: fc.array(roundArbitrary(deeds), { minLength: 4, maxLength: 6, size: 'max' }),
    });
  });
}
