/** A module bundled with its imports, as script text (`worker-source.mjs`). */
declare module '*.ts?source' {
  export const source: string;
}
