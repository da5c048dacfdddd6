import { useMemo, useState } from 'preact/hooks';
import { durationBoundsOf } from '../../../../access/policy/emergency-policy.ts';
import type { AccessConfig } from '../../../../api/access/template-spec.ts';
import type { KubeObject } from '../../../../api/object.ts';
import { approversText } from '../../../approver-text.ts';
import { statusOf, templateSpecOf, unreadinessOf } from '../../../request-state.ts';
import type { RuleLine } from '../../../rule-lines.ts';
import type { RunCall } from '../../wire.ts';
import { run } from '../api.ts';
import { requestPath, useApp } from '../app.ts';
import { Failed, itemsOf, useAction, useFlags, useRun } from '../commands.tsx';
import { Chip, type Columns, Go, Table, Title, two, useFilter } from '../ui.tsx';

/** What a template is called here; `typeOf` of the client would bring its schemas. */
const typeOf = ({ kind }: KubeObject): 'pod' | 'exec' => (kind.startsWith('Pod') ? 'pod' : 'exec');
const pathOf = (template: KubeObject): string =>
  `/ask/${template.metadata.namespace}/${typeOf(template)}/${template.metadata.name}`;
const configOf = (template: KubeObject) => templateSpecOf(template).accessConfig;

export function Ask() {
  const { namespace, path, start } = useApp();
  const read = useRun({ command: 'templates', ...(namespace === undefined ? {} : { namespace }) });
  const all = useMemo(() => itemsOf<KubeObject>(read.result) ?? [], [read.result]);
  const usable = useMemo(() => all.filter((template) => mayUse(template, start.groups)), [all, start]);
  const [found, filter] = useFilter(usable, textOf);
  const chosen = all.find((template) => pathOf(template) === path);
  if (chosen) return <Form key={path} template={chosen} />;
  return (
    <>
      <Title>Ask</Title>
      {filter}
      <Failed of={read} />
      <Table
        caption="Templates"
        columns={columns}
        rows={found}
        keyOf={pathOf}
        empty={read.busy ? 'Reading the templates …' : 'No template here lets you ask for access.'}
      />
    </>
  );
}

function mayUse(template: KubeObject, groups: readonly string[]): boolean {
  const { allowedGroups = [], emergency } = configOf(template) ?? {};
  return [...allowedGroups, ...(emergency?.groups ?? [])].some((group) => groups.includes(group));
}

const textOf = (template: KubeObject): string =>
  `${pathOf(template)} ${templateSpecOf(template).controllerTargetRef?.name ?? ''}`;

const columns: Columns<KubeObject> = {
  Template: (template) => two(<Go to={pathOf(template)}>{template.metadata.name}</Go>, template.metadata.namespace),
  Opens: (template) => (typeOf(template) === 'pod' ? 'a pod of your own' : 'a running pod'),
  'How long': (template) => `${boundsOf(template).usual}, at most ${boundsOf(template).longest}`,
  'Approved by': (template) => approversText(template) || 'no one',
  Ready: (template) =>
    statusOf(template).ready ? (
      <Chip tone="good">Ready</Chip>
    ) : (
      <>
        <Chip tone="warn">Not ready</Chip> {unreadinessOf(template)}
      </>
    ),
};

/** The API server has filled in the defaults. */
function boundsOf(template: KubeObject, emergency = false) {
  const config = configOf(template) as AccessConfig;
  return { usual: config.defaultDuration, longest: durationBoundsOf({ emergency }, config).maxDuration };
}

function Form({ template }: { readonly template: KubeObject }) {
  const { go, say } = useApp();
  const [emergency, setEmergency] = useState(false);
  const [action, start] = useAction();
  const { namespace = '', name } = template.metadata;
  const type = typeOf(template);
  const config = configOf(template);
  const { usual, longest } = boundsOf(template, emergency);
  const ahead = emergency ? undefined : config?.start?.maxAhead;
  const [typed, inputs] = useFlags([
    { flag: 'for', label: 'How long', placeholder: emergency ? '' : usual, hint: `At most ${longest}.` },
    { flag: 'reason', label: 'Reason', required: emergency || !!config?.reason, hint: config?.reason?.prompt },
    ...(ahead ? [{ flag: 'at', label: 'Not before', isTime: true, hint: `At most ${ahead} ahead.` }] : []),
    ...(type === 'pod' ? [] : [{ flag: 'pod', label: 'Pod', hint: 'Empty: the server chooses one.' }]),
  ]);
  const flags = { ...typed, ...(emergency && { emergency }) };
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const result = await start(run({ command: `request ${type}`, namespace, args: [name], flags }));
    if (result?.exitCode !== 0) return;
    const created = result.output as KubeObject;
    go(requestPath(`${namespace}/${created.kind}/${created.metadata.name}`));
    say('Requested', result);
  };
  return (
    <>
      <p>
        <Go to="/ask">All templates</Go>
      </p>
      <Title>{`Ask: ${name}`}</Title>
      <div class="columns">
        <form class="card" onSubmit={submit}>
          {inputs}
          {config?.emergency && (
            <label class="row">
              <input type="checkbox" checked={emergency} onChange={() => setEmergency(!emergency)} /> This is an
              emergency: another person reviews it afterwards
            </label>
          )}
          <Failed of={action} />
          <button type="submit" class="main" disabled={action.busy}>
            {action.busy ? 'Asking …' : 'Ask'}
          </button>
        </form>
        <div>
          <Rules call={{ command: 'explain', namespace, args: [`${type}/${name}`], flags }} />
          <Approvers call={{ command: 'approvers', namespace, args: [`${type}/${name}`] }} />
        </div>
      </div>
    </>
  );
}

const tones = { fail: 'bad', 'not checked': 'warn', note: 'off', pass: 'good' } as const;

/** What the server says of the request so far: a dry run, 400 ms after the last key. */
function Rules({ call }: { readonly call: RunCall }) {
  const read = useRun(call, 400);
  const { result, busy } = read;
  const mayAsk = result?.exitCode === 0;
  // Who can approve is a list of its own.
  const lines = itemsOf<RuleLine>(result)?.filter(({ rule }) => rule !== 'approvals');
  return (
    <section aria-label="Rules" aria-busy={busy}>
      <h2>
        Rules{' '}
        <span role="status">
          <Chip tone={busy ? 'wait' : mayAsk ? 'good' : 'bad'}>
            {busy ? 'Checking …' : mayAsk ? 'You may ask' : 'Not yet'}
          </Chip>
        </span>
      </h2>
      <Failed of={read} />
      <ul class="list">
        {lines?.map(({ verdict, rule, remedy, requirement }) => (
          <li key={`${rule} ${requirement}`}>
            <Chip tone={tones[verdict]}>{verdict}</Chip> <b>{rule}</b> {remedy || requirement}
          </li>
        ))}
      </ul>
    </section>
  );
}

type Approver = Readonly<Record<'kind' | 'name' | 'countsFor', string>>;

function Approvers({ call }: { readonly call: RunCall }) {
  const read = useRun(call);
  return (
    <section>
      <h2>Who can approve</h2>
      <Failed of={read} />
      {itemsOf<Approver>(read.result)?.map(({ kind, name, countsFor }) => (
        <p key={`${kind} ${name} ${countsFor}`}>
          {kind} <b>{name}</b> <span class="quiet">counts for {countsFor}</span>
        </p>
      ))}
    </section>
  );
}
