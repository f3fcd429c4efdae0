import { isObject, type JsonValue } from '../json.ts';
import { type FileOperations, fileOperations } from '../os/atomic-file.ts';
import { ioError, systemCode } from '../os/io-error.ts';
import { readRecord, writeRecord } from '../os/record.ts';
import type { DesiredBackend } from '../plan/backend.ts';
import type { RecordedOutcome } from '../plan/history.ts';
import type { BackendPart, EarlierState } from '../plan/rollback.ts';
import { blocksOf, storedBlocks } from '../settings/blocks.ts';
import type { Places } from './places.ts';
import { type FileHost, parseRecordedSettings } from './settings-file.ts';

/** An apply that has not been proven yet, or whose return is in progress. Written before the state that it announces. */
export interface TransactionRecord {
  /** Version of the desired state that the apply created. */
  generation: number;
  /** `returning`: the change has failed, and `earlier` is being restored. */
  phase: 'changing' | 'returning';
  /** The state that the apply wrote. */
  after: DesiredBackend;
  earlier: EarlierState;
  touched: BackendPart[];
  failedBefore?: BackendPart;
  /** The cause of the change's failure, and the steps until then. */
  reason?: string;
  phases?: NonNullable<RecordedOutcome['phases']>;
}

type Files = Pick<Places, 'provenFile' | 'transactionFile'>;

/** The last proven state, and the apply in progress. Both contain secrets, so that only the owner can read the files. */
export interface TransactionFiles {
  /** Reads the last proven state. Undefined if nothing has run, or the file cannot be used. Throws `ERR_IO`. */
  readProven(): Promise<EarlierState | undefined>;
  saveProven(state: EarlierState): Promise<void>;
  /** Reads the apply in progress. Undefined if there is none, or the file cannot be used. Throws `ERR_IO`. */
  readTransaction(): Promise<TransactionRecord | undefined>;
  saveTransaction(record: TransactionRecord): Promise<void>;
  /** Removes the record of the apply. Idempotent. Throws `ERR_IO`. */
  removeTransaction(): Promise<void>;
}

const FORMAT = 1;
const PARTS: readonly string[] = ['machine', 'engine', 'cluster'] satisfies BackendPart[];

export function transactionFiles(
  { provenFile, transactionFile }: Files,
  host: FileHost,
  operations: FileOperations = fileOperations,
): TransactionFiles {
  return {
    async readProven() {
      const record = await readRecord(provenFile);
      return record === undefined || record === 'damaged' ? undefined : earlierIn(record, host);
    },
    saveProven: (state) => writeRecord(provenFile, { format: FORMAT, ...plain(state) }, { operations }),
    async readTransaction() {
      const record = await readRecord(transactionFile);
      return record === undefined || record === 'damaged' ? undefined : transactionIn(record, host);
    },
    saveTransaction: (record) => writeRecord(transactionFile, { format: FORMAT, ...record }, { operations }),
    async removeTransaction() {
      await operations.unlink(transactionFile).catch((cause: unknown) => {
        if (systemCode(cause) !== 'ENOENT') throw ioError('remove', transactionFile, cause);
      });
    },
  };
}

/** Picks the members of a state, leaving out any others. */
function plain(state: EarlierState): EarlierState {
  const { generation, settings, power } = state;
  return { generation, settings, ...blocksOf(state), power };
}

function earlierIn(value: JsonValue | undefined, host: FileHost): EarlierState | undefined {
  const state = backendIn(value, host);
  if (!state || !isObject(value) || typeof value.generation !== 'number') return undefined;
  return { ...state, generation: value.generation };
}

function backendIn(value: JsonValue | undefined, host: FileHost): DesiredBackend | undefined {
  if (!isObject(value)) return undefined;
  const settings = parseRecordedSettings(value.settings ?? null, host);
  const blocks = storedBlocks(value);
  const { power } = value;
  if (!settings || !blocks || (power !== 'started' && power !== 'stopped')) return undefined;
  return { settings, ...blocks, power };
}

function transactionIn(record: { [name: string]: JsonValue }, host: FileHost): TransactionRecord | undefined {
  const { format, generation, phase, touched, failedBefore, reason, phases } = record;
  const after = backendIn(record.after, host);
  const earlier = earlierIn(record.earlier, host);
  if (format !== FORMAT || typeof generation !== 'number' || !after || !earlier) return undefined;
  if ((phase !== 'changing' && phase !== 'returning') || !Array.isArray(touched)) return undefined;
  return {
    ...{ generation, phase, after, earlier },
    touched: touched.filter(isPart),
    ...(isPart(failedBefore) ? { failedBefore } : {}),
    ...(typeof reason === 'string' ? { reason } : {}),
    // Written by this service, and used for display only.
    ...(Array.isArray(phases) ? { phases: phases as unknown as NonNullable<RecordedOutcome['phases']> } : {}),
  };
}

function isPart(value: JsonValue | undefined): value is BackendPart {
  return typeof value === 'string' && PARTS.includes(value);
}
