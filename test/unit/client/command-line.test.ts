import assert from 'node:assert/strict';
import { allFlags, readCommandLine } from '../../../src/client/args.ts';
import { commands } from '../../../src/client/commands.ts';
import { complete, completionLines } from '../../../src/client/complete.ts';
import { Problem } from '../../../src/client/problem.ts';

const read = (line: string) => readCommandLine(line.split(' '), commands);
const problemOf = (line: string): Problem => {
  try {
    read(line);
  } catch (error) {
    if (error instanceof Problem) return error;
  }
  throw new Error(`no problem: ${line}`);
};

describe('the command line of the client', () => {
  it('reads flags before, within, and after the command, as kubectl does', () => {
    for (const line of [
      '-n payments -o=wide request pod shell --for 30m',
      'request -n payments pod shell -owide --for=30m',
      'request pod shell --namespace payments --output wide --for 30m',
    ]) {
      const { command, args } = read(line);
      assert.deepEqual(
        [command.name, args.positionals, args.text('namespace'), args.text('output'), args.durationMs('for')],
        ['request pod', ['shell'], 'payments', 'wide', 1_800_000],
        line,
      );
    }
  });

  it('keeps apart what follows --', () => {
    const { args } = read('request pod shell --exec -- ls -l --for');
    assert.deepEqual([args.positionals, args.rest, args.has('exec')], [['shell'], ['ls', '-l', '--for'], true]);
  });

  it('takes the last value, and every value of a repeated flag', () => {
    const { args } = read('list --as a --as b --as-group c --as-group d --everyone=false');
    assert.deepEqual([args.text('as'), args.texts('as-group'), args.has('everyone')], ['b', ['c', 'd'], false]);
  });

  const wrong: readonly (readonly [line: string, message: RegExp])[] = [
    ['lsit', /unknown command "lsit"; did you mean list\?/],
    ['xyzzy', /unknown command "xyzzy"; see --help/],
    ['request', /request: the subcommand is missing; available: request pod, request exec/],
    ['request pot x', /request: unknown subcommand "pot"; available/],
    ['list --evryone', /list: unknown flag "--evryone"; did you mean --everyone\?/],
    ['list --for 3m', /list: unknown flag "--for"/],
    ['get', /REQUEST is missing: get REQUEST/],
    ['get a b', /unexpected argument "b"/],
    ['get a -- b', /takes nothing after --/],
    ['list --everyone=maybe', /--everyone takes no value; omit "maybe"/],
    ['list --user', /--user needs a value: --user NAME/],
    ['extend a --by 0s', /--by is "0s"; it must be above zero/],
  ];
  for (const [line, message] of wrong) {
    it(`says what is wrong with: ${line}`, () => {
      const { exitCode, message: found } = line.startsWith('extend')
        ? (() => {
            const { args } = read(line);
            try {
              args.durationMs('by');
            } catch (error) {
              if (error instanceof Problem) return error;
            }
            throw new Error('no problem');
          })()
        : problemOf(line);
      assert.equal(exitCode, 2);
      assert.match(found, message);
    });
  }

  it('has one meaning for each flag', () => {
    const kinds = new Map<string, string>();
    for (const { name, short = '', value, repeated } of allFlags(commands)) {
      const kind = `${short} ${value === undefined ? 'no value' : 'a value'} ${repeated ?? false}`;
      assert.equal(kinds.get(name) ?? kind, kind, `--${name}`);
      kinds.set(name, kind);
    }
  });
});

describe('completion offers', () => {
  const refuse = () => Promise.reject(new Error('no cluster'));
  const offered = async (line: string): Promise<string[]> => {
    const { candidates, files } = await complete(line.split(' '), {
      commands,
      connect: refuse,
      contexts: async () => ['a', 'b'],
    });
    return [...candidates.map(({ word }) => word), ...(files ? ['(files)'] : [])];
  };
  const cases: readonly (readonly [line: string, words: readonly string[]])[] = [
    ['re', ['request', 'revoke']],
    ['request ', ['pod', 'exec']],
    ['templates ', ['new']],
    ['templates new --kind ', ['PodAccessTemplate', 'ExecAccessTemplate']],
    ['-n payments request ', ['pod', 'exec']],
    ['list --ev', ['--everyone']],
    ['list -o ', ['table', 'wide', 'json', 'yaml', 'name']],
    ['list --output j', ['json']],
    ['list --context ', ['a', 'b']],
    ['list --kubeconfig ', ['(files)']],
    ['exec a -- ', ['(files)']],
    ['completion z', ['zsh']],
    ['get ', []],
  ];
  for (const [line, words] of cases)
    it(`${words.join(', ') || 'nothing'} after: ${line}`, async () => assert.deepEqual(await offered(line), words));

  it('lines as Cobra prints them, without control characters', () => {
    const candidates = [
      { word: 'a\u001b', help: 'x\ty' },
      { word: 'b', help: '' },
    ];
    assert.equal(completionLines({ candidates, files: false }), 'a?\tx?y\nb\n:4\n');
    assert.equal(completionLines({ candidates: [], files: true }), ':0\n');
  });
});
