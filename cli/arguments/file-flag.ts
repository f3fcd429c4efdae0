/** `-f` of every command that reads desired-state files. */
export const FILE_FLAG = {
  type: 'strings',
  short: 'f',
  summary: 'Profile or settings file, - for standard input; later files win',
  placeholder: 'FILE',
} as const;
