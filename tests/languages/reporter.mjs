// The results of Node's test runner as lines for `cases` (../suites/clients.sh): pass, fail or skip, the name, why; separated by tabs.

const line = (kind, {name, file}, why = '') => {
  const from = file ? `${file.replace(/.*\//, '').replace(/\.test\.mjs$/, '')}: ` : '';
  return `${kind}\t${from}${name}\t${String(why).replace(/\s+/g, ' ').slice(0, 300)}\n`;
};

export default async function* reporter(source) {
  for await (const {type, data} of source) {
    if (type === 'test:fail') yield line('fail', data, data.details.error?.cause?.message ?? data.details.error?.message);
    else if (type === 'test:pass' && data.skip !== undefined) yield line('skip', data, data.skip);
    else if (type === 'test:pass' && data.details.type !== 'suite') yield line('pass', data);
  }
}
