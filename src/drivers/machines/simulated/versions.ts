/** Cluster versions that the simulation offers, newest first. Fixed: unrelated to actual releases. */
export const SIMULATED_VERSIONS: readonly string[] = [
  '1.33.4',
  '1.33.3',
  '1.32.8',
  '1.32.7',
  '1.32.1',
  '1.31.12',
  '1.31.5',
  '1.31.2',
  '1.30.14',
  '1.30.2',
  '1.30.1',
  '1.29.15',
  '1.29.4',
  '1.28.15',
];
