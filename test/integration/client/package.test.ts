import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pkg from '../../../package.json' with { type: 'json' };
import { AccessStage } from '../../support/access-stage.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));

interface Ran {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

describe('the npm package of the client', function () {
  this.timeout(120_000);
  let folder: string;
  let stage: AccessStage;

  const run = (command: string, args: readonly string[], env: object = {}): Ran =>
    spawnSync(command, args, { cwd: folder, encoding: 'utf8', env: { ...process.env, ...env } });
  const ok = (command: string, args: readonly string[], env: object = {}): string => {
    const { status, stdout, stderr } = run(command, args, env);
    assert.equal(status, 0, `${command} ${args.join(' ')}: ${stderr}${stdout}`);
    return stdout;
  };

  before(async function () {
    this.timeout(240_000);
    folder = mkdtempSync(join(tmpdir(), 'drawbridge-package-'));
    ok(process.execPath, ['--import', join(root, 'node_modules/tsx/dist/esm/index.mjs'), join(root, 'release/npm.ts')]);
    ok('npm', ['pack', join(root, 'dist/npm'), '--silent']);
    // Offline, because it needs no other package.
    ok('npm', [
      'install',
      '--offline',
      '--no-audit',
      '--no-fund',
      '--prefix',
      folder,
      `./drawbridge-${pkg.version}.tgz`,
    ]);
    stage = await AccessStage.open();
    await stage.createReady(stage.alice, {
      kind: 'ExecAccessRequest',
      apiVersion: 'crds.wizardofoz.co/v1alpha1',
      metadata: { name: 'completes' },
      spec: { templateName: 'payments-exec' },
    });
  });
  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    await stage?.close();
  });

  /** The environment of alice in a shell, with the installed programs on the PATH. */
  const environment = (): NodeJS.ProcessEnv => ({
    KUBECONFIG: stage.alice.kubeconfig,
    PATH: [join(folder, 'node_modules/.bin'), dirname(stage.plane.binaries.kubectl), process.env['PATH']].join(':'),
    HOME: folder,
  });

  it('has one program, a license, and no dependencies', () => {
    assert.deepEqual(
      readdirSync(join(folder, 'node_modules')).filter((name) => !name.startsWith('.')),
      ['drawbridge'],
    );
    const files = readdirSync(join(folder, 'node_modules/drawbridge')).sort();
    assert.deepEqual(files, ['LICENSE', 'README.md', 'client.cjs', 'package.json']);
  });

  it('runs by itself, and as a plugin of kubectl, which says so in its help', () => {
    assert.equal(ok('drawbridge', ['version', '--client'], environment()), `drawbridge ${pkg.version}\n`);
    assert.equal(ok('kubectl', ['drawbridge', 'version', '--client'], environment()), `drawbridge ${pkg.version}\n`);
    assert.match(
      ok('kubectl', ['drawbridge', 'list', '--help'], environment()),
      /^ {2}kubectl drawbridge list \[flags\]$/m,
    );
    assert.match(ok('kubectl', ['drawbridge', 'list', '-n', stage.namespace], environment()), /^completes +exec /m);
  });

  const ask = (): string => `drawbridge -n ${stage.namespace} get `;
  const inBash = `source <(drawbridge completion bash); COMP_LINE="$LINE"; read -ra COMP_WORDS <<<"$LINE";
    [[ $LINE == *' ' ]] && COMP_WORDS+=(''); COMP_CWORD=$(( \${#COMP_WORDS[@]} - 1 )); _drawbridge; printf '%s\\n' "\${COMPREPLY[@]}"`;
  // `string replace` fails if no word has a description.
  const inFish = 'drawbridge completion fish | source; complete -C "$LINE" | string replace -r "\\t.*" ""; true';
  // These functions stand for those of compinit.
  const inZsh = `compdef() { :; }; _describe() { print -rl -- "\${(@)\${(P)2}%%:*}"; }; source <(drawbridge completion zsh);
    words=(\${(s: :)LINE}); [[ $LINE == *' ' ]] && words+=(''); CURRENT=\${#words}; _drawbridge`;
  const shells: readonly (readonly [shell: string, script: string])[] = [
    ['bash', inBash],
    ['zsh', inZsh],
    ['fish', inFish],
  ];
  for (const [shell, script] of shells) {
    it(`completes commands, flags, and names of requests in ${shell}`, () => {
      const complete = (line: string): string[] =>
        ok(shell, ['-c', script], { ...environment(), LINE: line })
          .trim()
          .split('\n')
          .sort();
      assert.deepEqual(complete('drawbridge requ'), ['request']);
      assert.deepEqual(complete('drawbridge request '), ['exec', 'pod']);
      assert.deepEqual(complete('drawbridge list --ev'), ['--everyone']);
      assert.deepEqual(complete(ask()), ['completes']);
      assert.deepEqual(complete('drawbridge list --output=js'), ['--output=json']);
    });
  }

  it('completes at Tab in the line editor of zsh', () => {
    // The answer goes through a file, because the terminal shows the line with escape sequences.
    const script = `zmodload zsh/zpty; zpty -b editor zsh -f -i
      zpty -w editor 'autoload -Uz compinit && compinit -D -u; source <(drawbridge completion zsh)'
      zpty -w editor 'tab() { zle complete-word; print -r -- "$BUFFER" >|$ANSWER; zle kill-whole-line }; zle -N tab; bindkey "^I" tab'
      for typed in "$@"; do
        : >|$ANSWER; zpty -n -w editor "$typed"$'\\t'
        until [[ -s $ANSWER ]]; do
          zpty -rt editor shown || sleep 0.05
          if (( SECONDS > 60 )); then print -ru2 "no completion of $typed: $shown"; exit 1; fi
        done
        cat $ANSWER
      done
      zpty -d editor`;
    const typed = ['drawbridge requ', 'drawbridge request p', 'drawbridge list --ev', ask()];
    const environmentOfShell = { ...environment(), ANSWER: join(folder, 'answer') };
    assert.equal(
      ok('zsh', ['-f', '-c', script, 'zsh', ...typed], environmentOfShell),
      `drawbridge request \ndrawbridge request pod \ndrawbridge list --everyone \n${ask()}completes \n`,
    );
  });

  it('completes a value in bash, which splits it from its flag, and quotes names that a shell would run', () => {
    const fake = 'drawbridge() { [[ $3 == --context=e ]] && printf "%s\\n" "--context=e\\$(touch x)" :4; }';
    const words = 'COMP_WORDS=(drawbridge list --context = e); COMP_CWORD=4';
    const script = `source <(drawbridge completion bash); ${fake}; ${words}; _drawbridge; printf '%s' "\${COMPREPLY[0]}"`;
    assert.equal(ok('bash', ['-c', script], environment()), 'e\\$\\(touch\\ x\\)');
  });

  it('completes in kubectl', () => {
    const complete = (...args: string[]): string[] =>
      ok('kubectl', ['__complete', 'drawbridge', ...args], environment())
        .trim()
        .split('\n');
    assert.deepEqual(complete('requ'), ['request\trequest ...', ':4']);
    assert.deepEqual(complete('-n', stage.namespace, 'get', ''), ['completes\texec', ':4']);
  });
});
