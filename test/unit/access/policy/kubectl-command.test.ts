import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import {
  commandDoubts,
  readAccessCommand,
  renderAccessMessage,
} from '../../../../src/access/policy/kubectl-command.ts';
import type { AccessConfig } from '../../../../src/api/access/template-spec.ts';
import { runs } from '../../../support/runs.ts';

const refusalOf = (accessCommand: string, rules: Pick<AccessConfig, 'exec' | 'rules'> = {}): string => {
  const read = readAccessCommand({ accessCommand, ...rules });
  return 'violation' in read ? `${read.violation.code}: ${read.violation.message}` : 'allowed';
};
const pod = { name: '{{ .Metadata.Name }}', namespace: '{{ .Metadata.Namespace }}' };
const subject = { namespace: 'payments', name: 'web-1', labels: { team: 'a b' }, annotations: {} };
const render = (accessCommand: string) => renderAccessMessage({ accessCommand }, subject);

describe('the client in an access command', () => {
  const allowed = [
    `kubectl exec -ti -n ${pod.namespace} ${pod.name} -- /bin/sh`,
    `kubectl exec -it -n ${pod.namespace} -c web pod/${pod.name} -- bundle exec rails console`,
    `kubectl -n payments exec --stdin --tty=true --container=web ${pod.name} -- sh`,
    `kubectl --context production exec ${pod.name} -- sh -c 'tail -f /var/log/*.log | grep -v "GET /" && echo $HOME; exit'`,
    `kubectl exec ${pod.name} -- psql "host=db user={{ index .Metadata.Labels "team" }}"`,
    `oc exec ${pod.name} -- sh`,
    `kubectl attach -ti ${pod.name}`,
    `kubectl logs -f --tail=100 ${pod.name}`,
    `kubectl logs --since 1h30m --tail -1 --pod-running-timeout=1m ${pod.name} web`,
    `kubectl port-forward ${pod.name} 8080:80`,
    `kubectl port-forward ${pod.name} 0:80 :443 https 8443:https -- 9090`,
    `kubectl port-forward ${pod.name} {{ index .Metadata.Annotations "port" }}`,
    `kubectl -c web -it exec ${pod.name} -- sh`,
    `kubectl exec -it -c web ${pod.name} /bin/bash`,
    `kubectl logs --since=0s --tail=+5 ${pod.name}`,
    `kubectl logs --since=500ms ${pod.name}`,
    `kubectl logs --tail=0x10 ${pod.name}`,
    `kubectl logs --tail=010 -p -f=false --context= --container= ${pod.name}`,
    `kubectl logs ${pod.name} -- web`,
    `kubectl exec -it=T --quiet=0 --request-timeout=30 ${pod.name} -- sh`,
    `kubectl exec --request-timeout 1m30s --context {{ index .Metadata.Labels "team" }} ${pod.name} -- sh`,
    `kubectl exec --request-timeout= --tty={{ index .Metadata.Labels "team" }} ${pod.name} -- sh`,
    `kubectl port-forward ${pod.name} 008080:80`,
    `kubectl exec ${pod.name} -- grep '\\.js\\\\' '\\{{ index .Metadata.Labels "team" }}'`,
    `  kubectl exec ${pod.name} -- sh  `,
  ];
  for (const source of allowed) {
    it(`may be ${source}`, () => assert.equal(refusalOf(source), 'allowed'));
  }

  const exec = `kubectl exec -ti ${pod.name} -- sh`;
  const refused: [string, RegExp][] = [
    [`${exec}; curl https://example.org/x | sh`, /has ";" outside of quotes, which the shell of the requester may/],
    [`${exec} | sh`, /has "\|" outside/],
    [`${exec} && id`, /has "&" outside/],
    [`${exec} > ~/.ssh/authorized_keys`, /has ">" outside/],
    [`${exec} < /etc/passwd`, /has "<" outside/],
    [`${exec} $(id)`, /has "\$" outside/],
    [`${exec} \`id\``, /has "`" outside/],
    [`${exec} "$(id)"`, /has "\$" between double quotes/],
    [`${exec} "\`id\`"`, /has "`" between double quotes/],
    [`${exec} "\\"; id; \\""`, /between double quotes/],
    [`${exec} !!`, /has "!" outside/],
    [`${exec} \\; id`, /outside of quotes/],
    [`${exec} {a,b}`, /has "\{" outside/],
    [`${exec} # and then`, /has "#" outside/],
    [`${exec} ‘quoted’`, /has "‘" outside/],
    [
      `${exec} 'a\\' b ' ; touch /tmp/pwned #'`,
      /has a backslash directly before a closing '.* write the backslash twice/,
    ],
    [`${exec} 'a\\\\\\' b`, /has a backslash directly before a closing '/],
    [`${exec} 'open`, /has an unclosed '; close the quotes/],
    [`${exec} "open`, /has an unclosed "; close the quotes/],
    [`curl https://example.org`, /begins with "curl"; allowed are kubectl and oc, for example: kubectl exec/],
    [`PATH=/tmp ${exec}`, /begins with "PATH=\/tmp"/],
    [`/tmp/kubectl exec ${pod.name}`, /begins with "\/tmp\/kubectl"/],
    [`''`, /begins with an empty word/],
    [`kubectl`, /has kubectl without a verb; allowed are exec, attach, logs, port-forward/],
    [`kubectl apply -f https://example.org/role.yaml`, /has kubectl "apply"; allowed are exec/],
    [
      `kubectl debug -it -n ${pod.namespace} ${pod.name} --image=busybox`,
      /has kubectl "debug"; allowed are exec, attach, logs, port-forward, for example: kubectl exec/,
    ],
    [`kubectl apply ${pod.name}`, /has kubectl "apply"; allowed are exec/],
    [`kubectl cp ${pod.name}:/x /root/.bashrc`, /has kubectl "cp"/],
    [`kubectl -n exec delete pod ${pod.name}`, /has kubectl "delete"/],
    [
      `kubectl exec -f https://example.org/pod.yaml ${pod.name} -- sh`,
      /has the option "-f"; allowed for exec are -n --namespace/,
    ],
    [`kubectl --server https://example.org exec ${pod.name} -- sh`, /has the option "--server"; allowed are -n/],
    [`kubectl --kubeconfig=/tmp/x exec ${pod.name} -- sh`, /has the option "--kubeconfig"/],
    [`kubectl exec --server https://example.org ${pod.name} -- sh`, /has the option "--server"/],
    [`kubectl exec ${pod.name} --as=admin -- sh`, /has the option "--as"/],
    [`kubectl exec -n${pod.namespace} ${pod.name} -- sh`, /has the option "-nthe namespace"/],
    [`kubectl exec -{{ index .Metadata.Labels "team" }} ${pod.name} -- sh`, /has the option "-the label"/],
    [`kubectl exec vault-0 -- sh`, /has the target "vault-0"; write \{\{ \.Metadata\.Name \}\} instead/],
    [`kubectl exec deploy/${pod.name} -- sh`, /has the target "deploy\/the name"/],
    [`kubectl exec -c ${pod.name} -- sh`, /is kubectl exec without a target/],
    [`kubectl exec -- ${pod.name}`, /is kubectl exec without a target/],
    [
      `kubectl exec -it -c cart ${pod.name}`,
      /is kubectl exec without a command for the pod; write --, then the command, for example: kubectl exec/,
    ],
    [
      `kubectl attach --pod-running-timeout=0s ${pod.name}`,
      /"--pod-running-timeout" with the value "0s"; .* above zero/,
    ],
    [`kubectl exec -it ${pod.name} --`, /is kubectl exec without a command for the pod/],
    [`kubectl exec -it ${pod.name} -- ''`, /is kubectl exec without a command for the pod/],
    [
      `kubectl exec -it ${pod.name} sh -- -c 'ls /'`,
      /has "sh" between the pod and --, which kubectl ignores; write the whole command for the pod after --$/,
    ],
    [`kubectl exec ${pod.name} {{ index .Metadata.Labels "team" }} -- sh`, /has "the label" between the pod and --/],
    [`kubectl exec ${pod.name} sh --`, /is kubectl exec without a command for the pod/],
    [
      `kubectl exec ${pod.name} -- -c app sh`,
      /has "-c" directly after --, where kubectl reads no option; write options before the --, and after it the command$/,
    ],
    [`kubectl exec --tail=1 ${pod.name} -- sh`, /has the option "--tail"; allowed for exec are/],
    [`kubectl --tail=1 exec ${pod.name} -- sh`, /has the option "--tail"; allowed for exec are/],
    [`kubectl logs -it ${pod.name}`, /has the option "-it"; allowed for logs are/],
    [`kubectl port-forward -c web ${pod.name} 80`, /has the option "-c"; allowed for port-forward are/],
    [`kubectl logs ${pod.name} -c`, /has the option "-c" without a value; write one, or remove the option$/],
    ...['--container', '-c', '-c=', '--context'].map((option): [string, RegExp] => [
      `kubectl exec ${option} -n ${pod.namespace} ${pod.name} -- sh`,
      new RegExp(`has the option "${option.replace('=', '')}" without a value; write one, or remove the option$`),
    ]),
    [`kubectl logs --tail -n ${pod.namespace} ${pod.name}`, /has the option "--tail" without a value/],
    [`kubectl logs --since -f ${pod.name}`, /has the option "--since" without a value/],
    ...['--tty=maybe', '-i=maybe', '--stdin=yes', '-q=no', '-ti=x', '--tty='].map((option): [string, RegExp] => {
      const [name, value] = option.split('=');
      const message = `has the option "${name}" with the value "${value}"; write true or false, or only ${name}$`;
      return [`kubectl exec ${option} ${pod.name} -- sh`, new RegExp(message)];
    }),
    [`kubectl attach -ti=x ${pod.name}`, /has the option "-ti" with the value "x"; write true or false/],
    [`kubectl logs -f=maybe ${pod.name}`, /has the option "-f" with the value "maybe"; write true or false/],
    [`kubectl exec -i= ${pod.name} -- sh`, /has the option "-i" without a value/],
    [
      `kubectl exec --request-timeout=1d ${pod.name} -- sh`,
      /has the option "--request-timeout" whose value "1d" has the unknown unit "d"; allowed are numbers with a unit/,
    ],
    [`kubectl exec --request-timeout abc ${pod.name} -- sh`, /"--request-timeout" whose value "abc" is not a duration/],
    [
      `kubectl exec --request-timeout=-5 ${pod.name} -- sh`,
      /"--request-timeout" whose value "-5" has a number without/,
    ],
    [
      `kubectl logs ${pod.name} app sidecar`,
      /has "sidecar" after the container "app"; kubectl logs accepts one container after the pod: remove "sidecar"$/,
    ],
    [`kubectl logs ${pod.name} app -- sidecar`, /has "sidecar" after the container "app"/],
    [
      `kubectl logs ${pod.name} app -c app`,
      /names a container both after the pod and with -c; kubectl accepts only one of them: remove one$/,
    ],
    [`kubectl logs --container= ${pod.name} app`, /names a container both after the pod and with --container;/],
    [
      `kubectl attach ${pod.name} app`,
      /has "app" after the pod; kubectl attach accepts nothing there: to name a container, write it after -c$/,
    ],
    [`kubectl attach -ti pod/${pod.name} -- sh`, /has "sh" after the pod; kubectl attach accepts nothing there/],
    [
      `kubectl logs ${pod.name} --since 1d`,
      /has the option "--since" whose value "1d" has the unknown unit "d"; allowed are numbers with a unit/,
    ],
    [
      `kubectl logs ${pod.name} --since=400ms`,
      /"--since" with the value "400ms", which kubectl rounds to 0s, and the API server rejects that; write at least 500ms$/,
    ],
    [`kubectl logs ${pod.name} --since 499999999ns`, /, which kubectl rounds to 0s/],
    [`kubectl logs ${pod.name} --since=-5m`, /"--since" with the value "-5m"; write a duration above zero/],
    [
      `kubectl logs ${pod.name} --pod-running-timeout 30`,
      /"--pod-running-timeout" whose value "30" has a number without/,
    ],
    [`kubectl logs ${pod.name} --tail all`, /"--tail" with the value "all"; write a number of lines, or -1 for all$/],
    [`kubectl logs ${pod.name} --tail=`, /"--tail" with the value ""/],
    [`kubectl logs ${pod.name} --tail=-5`, /"--tail" with the value "-5"; write a number of lines, or -1 for all$/],
    [`kubectl logs ${pod.name} --tail=08`, /"--tail" with the value "08"/],
    [
      `kubectl port-forward ${pod.name}`,
      /is kubectl port-forward without a port; write one after the pod, such as 8080:8080$/,
    ],
    ...[
      '8080:',
      ':',
      '0',
      '8080:0',
      '70000',
      '8080:70000',
      'http:8080',
      '80:81:82',
      '8080:-',
      '8080:-1',
      '80:HTTP',
    ].map((port): [string, RegExp] => [
      `kubectl port-forward ${pod.name} ${port}`,
      new RegExp(`has the port "${port}"; write REMOTE, LOCAL:REMOTE, or :REMOTE, where`),
    ]),
    [`kubectl exec -ti {{ .Spec.Name }} -- sh`, /only these placeholders are allowed/],
  ];
  for (const [source, message] of refused) {
    it(`is not ${source}`, () => {
      const refusal = refusalOf(source);
      assert.match(refusal, /^InvalidAccessCommand: accessCommand /);
      assert.match(refusal, message);
    });
  }

  const inPod =
    /; write what a shell of the pod must interpret after sh -c, between single quotes: -- sh -c 'COMMAND'$/;
  const oneCall = /; the command is one call of kubectl: remove (.) and what follows it$/;
  const value = /; write the value itself, or a placeholder, such as \{\{ \.Metadata\.Namespace \}\}$/;
  const singleQuotes = /; write single quotes instead of the double quotes$/;
  const textOrCommand =
    /; put text for the program in the pod between single quotes; what a shell of the pod must interpret goes after sh -c: -- sh -c 'COMMAND'$/;
  const fillIn =
    /; write the value itself instead of (<.+>), or a placeholder, such as \{\{ \.Metadata\.Name \}\} for the pod$/;
  /** A command, what to do about it, and the command after that. */
  const corrected: [string, RegExp, string][] = [
    [`kubectl logs ${pod.name} | grep error`, oneCall, `kubectl logs ${pod.name}`],
    [`kubectl logs ${pod.name} > log; ls`, oneCall, `kubectl logs ${pod.name}`],
    [`kubectl exec ${pod.name} -- sh | tee log`, inPod, `kubectl exec ${pod.name} -- sh -c 'sh | tee log'`],
    [`kubectl exec ${pod.name} -- echo $HOME`, inPod, `kubectl exec ${pod.name} -- sh -c 'echo $HOME'`],
    [`kubectl exec ${pod.name} -- sh -c "echo $HOME"`, singleQuotes, `kubectl exec ${pod.name} -- sh -c 'echo $HOME'`],
    [`kubectl exec ${pod.name} -- sh -c "a \\b"`, singleQuotes, `kubectl exec ${pod.name} -- sh -c 'a \\b'`],
    [`kubectl exec -n $NS ${pod.name} -- sh`, value, `kubectl exec -n ${pod.namespace} ${pod.name} -- sh`],
    [`kubectl logs -n "$NS" ${pod.name}`, value, `kubectl logs -n payments ${pod.name}`],
    [
      `kubectl exec –ti ${pod.name} -- sh`,
      /has "–" outside of quotes, which is no hyphen; write - or --$/,
      `kubectl exec -ti ${pod.name} -- sh`,
    ],
    [
      `kubectl exec ${pod.name} — sh`,
      /has "—" outside of quotes, which is no hyphen; write - or --$/,
      `kubectl exec ${pod.name} -- sh`,
    ],
    [
      `kubectl exec ${pod.name} -- sh -c “ls”`,
      /has "“" outside of quotes, which no shell reads as a quote; write '$/,
      `kubectl exec ${pod.name} -- sh -c 'ls'`,
    ],
    [
      `kubectl exec\u00a0${pod.name} -- sh`,
      /outside of quotes, which no shell reads as a space; write a space$/,
      `kubectl exec ${pod.name} -- sh`,
    ],
    [
      'kubectl logs { .Metadata.Name }',
      /has "\{" outside of .*; placeholders have two braces, such as \{\{ \.Metadata\.Name \}\}$/,
      `kubectl logs ${pod.name}`,
    ],
    [
      `kubectl exec ${pod.name} -- sh -c "echo \\"a\\""`,
      /; write single quotes instead of the double quotes, without the backslash before "$/,
      `kubectl exec ${pod.name} -- sh -c 'echo "a"'`,
    ],
    [`kubectl exec ${pod.name} -- echo "$HOME"`, inPod, `kubectl exec ${pod.name} -- sh -c 'echo "$HOME"'`],
    [`kubectl exec ${pod.name} -- bash -lc "$CMD"`, singleQuotes, `kubectl exec ${pod.name} -- bash -lc '$CMD'`],
    [`kubectl exec ${pod.name} -- grep a* x`, textOrCommand, `kubectl exec ${pod.name} -- grep 'a*' x`],
    [`kubectl exec ${pod.name} -- ls *`, textOrCommand, `kubectl exec ${pod.name} -- sh -c 'ls *'`],
    [`kubectl exec ${pod.name} -- ls a?`, textOrCommand, `kubectl exec ${pod.name} -- sh -c 'ls a?'`],
    [`kubectl exec ${pod.name} -- ls [ab]`, textOrCommand, `kubectl exec ${pod.name} -- sh -c 'ls [ab]'`],
    [`kubectl exec ${pod.name} -- cat ~/x`, textOrCommand, `kubectl exec ${pod.name} -- sh -c 'cat ~/x'`],
    [`kubectl exec ${pod.name} -- ls {a,b}`, textOrCommand, `kubectl exec ${pod.name} -- bash -c 'ls {a,b}'`],
    [`kubectl exec ${pod.name} -- (ls)`, textOrCommand, `kubectl exec ${pod.name} -- sh -c '(ls)'`],
    [`kubectl exec ${pod.name} -- ls a\\ b`, textOrCommand, `kubectl exec ${pod.name} -- ls 'a b'`],
    [
      `kubectl exec ${pod.name} -- sh # shell`,
      /has "#" outside of quotes, .*; remove the comment, or put text for the program in the pod between single quotes$/,
      `kubectl exec ${pod.name} -- sh`,
    ],
    [
      `kubectl logs ${pod.name} # logs`,
      /; remove the comment, or put the value between single quotes$/,
      `kubectl logs ${pod.name}`,
    ],
    [
      `kubectl logs \\ ${pod.name}`,
      /has "\\\\" outside of quotes, .*; remove it, or put the value between single quotes$/,
      `kubectl logs ${pod.name}`,
    ],
    [
      `kubectl exec ${pod.name} -- grep ^a!é`,
      /has "\^" outside .*; outside of quotes only ASCII letters, digits, and _ .* are allowed: put text for the program in the pod between single quotes$/,
      `kubectl exec ${pod.name} -- grep '^a!é'`,
    ],
    ['kubectl exec -ti <pod> -- sh', fillIn, `kubectl exec -ti ${pod.name} -- sh`],
    [`kubectl logs <pod-name> -n payments`, fillIn, `kubectl logs ${pod.name} -n payments`],
    [`kubectl exec -c <your container> ${pod.name} -- sh`, fillIn, `kubectl exec -c app ${pod.name} -- sh`],
    [`kubectl exec ${pod.name} -- <command>`, fillIn, `kubectl exec ${pod.name} -- ls`],
    [`kubectl exec ${pod.name} -- wc < /x`, inPod, `kubectl exec ${pod.name} -- sh -c 'wc < /x'`],
    [
      `kubectl exec --context prod(eu) ${pod.name} -- sh`,
      /; outside of quotes only ASCII letters, .* are allowed: put the value between single quotes$/,
      `kubectl exec --context 'prod(eu)' ${pod.name} -- sh`,
    ],
  ];
  for (const [source, remedy, next] of corrected) {
    it(`is ${next} instead of ${source}`, () => {
      assert.match(refusalOf(source), remedy);
      assert.equal(refusalOf(next), 'allowed');
    });
  }

  it('is refused with an example of the same verb that the template allows, or of another one', () => {
    const log = { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] };
    const forward = { apiGroups: [''], resources: ['pods/portforward'], verbs: ['create'] };
    const logs = /has the target "deploy\/cart"; .*, for example: kubectl logs -f/;
    assert.match(refusalOf('kubectl logs deploy/cart', { exec: false, rules: [log] }), logs);
    assert.match(refusalOf('kubectl logs deploy/cart', { rules: [forward, log] }), logs);
    assert.match(refusalOf('kubectl logs deploy/cart'), /, for example: kubectl exec -ti/);
    assert.match(
      refusalOf('kubectl debug', { exec: false, rules: [forward, log] }),
      /has kubectl "debug"; allowed are logs, port-forward, for example: kubectl logs -f/,
    );
    const none = { exec: false, rules: [{ ...log, resources: ['pods/status'] }] };
    assert.match(refusalOf('kubectl attach web-1', none), /which is the granted pod$/);
    assert.match(
      refusalOf(`kubectl port-forward ${pod.name}`, { rules: [forward] }),
      /such as 8080:8080, for example: kubectl port-forward -n .* 8080:8080$/,
    );
    assert.match(refusalOf(`kubectl logs -ti ${pod.name}`, { rules: [forward] }), /--previous$/);
  });

  it('is refused without an example of exec, and as exec, if the template excludes exec', () => {
    const log = { apiGroups: [''], resources: ['pods/log', 'pods/exec'], verbs: ['get', 'create'] };
    const shell = `kubectl exec -ti ${pod.name}`;
    assert.match(
      refusalOf(shell, { exec: false, rules: [log] }),
      /accessCommand has kubectl "exec"; allowed are logs, for example: kubectl logs -f/,
    );
    assert.match(refusalOf(shell, { exec: false }), /has kubectl "exec"; allowed are attach, logs, port-forward$/);
    assert.match(
      refusalOf(`kubectl port-forward ${pod.name}`, { exec: false, rules: [log] }),
      /accessCommand has kubectl "port-forward"; allowed are logs, for example: kubectl logs -f/,
    );
  });

  it('may fail for its requester by what the pod or the template lacks', () => {
    const names = { containers: ['app'], ports: ['http'] };
    const doubts = (accessCommand: string): readonly string[] =>
      commandDoubts({ accessCommand } as AccessConfig, names, 'Pod web-1');
    const target = `-n ${pod.namespace} ${pod.name}`;
    assert.deepEqual(doubts(`kubectl exec -c app ${target} -- sh`), []);
    assert.deepEqual(doubts(`kubectl exec -c nope ${target} -- sh`), [
      'names the container "nope", which Pod web-1 does not have (it has [app])',
    ]);
    const [port, right, ...others] = doubts(`kubectl port-forward ${target} 8080:https http`);
    assert.match(port ?? '', /^names ports that no container of Pod web-1 has: \[https\] \(it has \[http\]\)$/);
    assert.match(right ?? '', /^is kubectl port-forward, which needs .* who do not already hold this permission$/);
    assert.deepEqual(others, []);
    assert.deepEqual(doubts('curl https://example.org'), []);
  });

  it('is rendered if it is allowed', () => {
    assert.deepEqual(render(`kubectl exec ${pod.name} -- echo {{ index .Metadata.Labels "team" }}`), {
      text: "kubectl exec web-1 -- echo 'a b'",
    });
    assert.ok('violation' in render('curl {{ .Metadata.Name }}'));
  });

  for (const before of ['"', "'", '\\', '$', '`', "$'a\\' ", '"$(echo "', '${x:-"', 'a "b" "']) {
    it(`is refused with a value that needs quotes after ${before}`, () => {
      const command = `kubectl exec ${pod.name} -- x ${before}{{ index .Metadata.Labels "team" }}`;
      for (const after of ['', '"', "'", '`', ')"', '"}']) assert.ok('violation' in render(command + after), command);
    });
  }

  it('is the only program that a real shell runs, with exactly the following arguments', () => {
    const piece = fc.constantFrom(
      'a',
      ' ',
      '"',
      "'",
      '\\',
      '$',
      '`',
      '(',
      ')',
      ';',
      '&',
      '|',
      '<',
      '>',
      '*',
      '~',
      '#',
      '!',
      '{',
      '=',
      '-',
    );
    const tail = fc.array(piece, { maxLength: 8 }).map((parts) => parts.join(''));
    const commands = fc.sample(tail, { seed: 23, numRuns: runs(3000) }).flatMap((text) => {
      const message = render(`kubectl exec ${pod.name} -- sh ${text}`);
      return 'text' in message ? [message.text] : [];
    });
    assert.ok(commands.length > runs(100), `${commands.length} commands are allowed`);
    // Prints one line for each call of a program of any name.
    const script = [
      'kubectl() { printf \'kubectl %s\\n\' "$*"; }',
      'command_not_found_handle() { printf \'other %s\\n\' "$*"; }',
      ...commands.map((command) => `${command}`),
    ].join('\n');
    const { stdout, stderr } = spawnSync('bash', ['-c', script], { encoding: 'utf8' });
    assert.equal(stderr, '');
    const lines = stdout.trimEnd().split('\n');
    assert.equal(lines.length, commands.length);
    for (const line of lines) assert.match(line, /^kubectl exec web-1 --/);
  });
});
