import { type Extract, extract } from 'tar-stream';

/**
 * Creates a reader of tar archives from untrusted sources. It refuses an entry whose size is not a number, for whose content the reader itself would
 * wait forever, and ignores the size of a directory, which has no content.
 */
export function tarReader(): Extract {
  const reader = extract();
  reader.on('entry', (header) => {
    const { name, type, size } = header;
    if (type === 'directory') header.size = 0;
    else if (!Number.isSafeInteger(size))
      reader.destroy(new Error(`the size of ${JSON.stringify(name)} is not a number`));
  });
  return reader;
}
