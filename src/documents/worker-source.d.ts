/** A module bundled with all that it imports, as the text of a script (`worker-source.mjs`). */
declare module '*.ts?source' {
  export const source: string;
}
