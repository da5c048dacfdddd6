import assert from 'node:assert/strict';
import { notificationSubscriptions } from '../../../../src/api/notify/notification-subscription.ts';
import { formatTime } from '../../../../src/kit/clock.ts';
import { factId } from '../../../../src/notify/fact.ts';
import { deliveriesOf, resolve } from '../../../../src/notify/facts/deliveries-of.ts';
import { type ProviderView, type SubscriptionView, viewSubscription } from '../../../../src/notify/stores.ts';
import { factOf } from '../../../support/notify/facts.ts';
import { objectOf } from '../../../support/notify/objects.ts';

const provider = (over: Partial<ProviderView> = {}): ProviderView => ({
  ...{ key: 'payments/chat', uid: 'p-1', resourceVersion: '1', namespace: 'payments', name: 'chat' },
  ...{ generation: 1, createdAtMs: 0, status: undefined, labels: {} },
  spec: { type: 'Teams' },
  ...over,
});
const subscription = (spec: object = {}, over: Partial<SubscriptionView> = {}): SubscriptionView => {
  const whole = { providerRef: { name: 'chat' }, events: ['requested'], ...spec };
  const metadata = { uid: 's-1', resourceVersion: '1', creationTimestamp: formatTime(0) };
  const view = viewSubscription(objectOf(notificationSubscriptions, 'payments', 's', whole, metadata));
  assert.ok(view);
  return { ...view, ...over };
};
const email: Partial<ProviderView> = { spec: { type: 'Email' } };
const elsewhere = { providerRef: { name: 'chat', namespace: 'tools' } };
const toolsProvider = (namespaces?: string[]) =>
  provider({
    ...{ key: 'tools/chat', namespace: 'tools' },
    spec: { type: 'Teams', ...(namespaces ? { namespaces } : {}) },
  });
const fact = factOf({ atMs: 1000, event: 'requested' });

const told = (subscriptions: readonly SubscriptionView[], its: ProviderView = provider(), labels = {}) =>
  deliveriesOf(fact, {
    providers: { get: (key) => (key === its.key ? its : undefined) },
    subscriptions,
    labels,
    addressOf: (user) => (user === 'alice' ? 'alice@example.com' : undefined),
  });

interface Row {
  readonly what: string;
  readonly subscription: SubscriptionView;
  readonly provider?: ProviderView;
  readonly labels?: Readonly<Record<string, string>>;
  readonly told: number;
}

const selector = { templateSelector: { matchLabels: { team: 'shop' } } };

const rows: readonly Row[] = [
  { what: 'its event', subscription: subscription(), told: 1 },
  { what: 'another event', subscription: subscription({ events: ['ended'] }), told: 0 },
  { what: 'no such provider', subscription: subscription({ providerRef: { name: 'other' } }), told: 0 },
  { what: 'a fact of its own second', subscription: subscription({}, { createdAtMs: 1000 }), told: 1 },
  { what: 'a fact before the subscription', subscription: subscription({}, { createdAtMs: 2000 }), told: 0 },
  {
    what: 'a fact before the provider',
    subscription: subscription(),
    provider: provider({ createdAtMs: 2000 }),
    told: 0,
  },
  { what: 'the labels of the template', subscription: subscription(selector), labels: { team: 'shop' }, told: 1 },
  { what: 'other labels', subscription: subscription(selector), labels: { team: 'x' }, told: 0 },
  {
    what: 'a selector that is not valid',
    subscription: subscription({ templateSelector: { matchLabels: { '-': 'x' } } }),
    told: 0,
  },
  { what: 'a provider elsewhere', subscription: subscription(elsewhere), provider: toolsProvider(), told: 0 },
  { what: 'one that names it', subscription: subscription(elsewhere), provider: toolsProvider(['payments']), told: 1 },
  { what: 'one that names all', subscription: subscription(elsewhere), provider: toolsProvider(['*']), told: 1 },
  { what: 'the requester in chat', subscription: subscription({ to: 'Requester' }), told: 0 },
];

describe('deliveries', () => {
  for (const row of rows) {
    it(`for ${row.what}: ${row.told}`, () => {
      assert.equal(told([row.subscription], row.provider, row.labels).length, row.told);
    });
  }

  it('are one for each provider and address, however many subscriptions overlap', () => {
    const mail = provider(email);
    const twice = [subscription(), subscription({}, { name: 't' })];
    assert.equal(told(twice, mail).length, 1);
    const both = told([...twice, subscription({ to: 'Requester' })], mail);
    assert.deepEqual(both.map(({ to }) => to).sort(), ['alice@example.com', undefined]);
    assert.equal(new Set(both.map(({ id }) => id)).size, 2);
  });

  it('have the same id in another process', () => {
    assert.equal(told([subscription()])[0]?.id, told([subscription({}, { uid: 'other' })])[0]?.id);
    assert.equal(factId('r-1', 'requested'), factId('r-1', 'requested', 0));
    assert.notEqual(factId('r-1', 'extended', 1), factId('r-1', 'extended', 2));
  });

  it('need a mail address of the requester', () => {
    const providers = { get: () => provider(email) };
    const matching = {
      providers,
      subscriptions: [subscription({ to: 'Requester' })],
      labels: {},
      addressOf: () => undefined,
    };
    assert.deepEqual(deliveriesOf(fact, matching), []);
  });
});

describe('a subscription', () => {
  const problemOf = (spec: object, its: ProviderView) => {
    const resolved = resolve(subscription(spec), { get: (key) => (key === its.key ? its : undefined) });
    return 'problem' in resolved ? resolved.problem : undefined;
  };
  it('names why it tells nothing', () => {
    assert.equal(problemOf({ providerRef: { name: 'x' } }, provider()), 'ProviderNotFound');
    assert.equal(problemOf(elsewhere, toolsProvider(['shop'])), 'ProviderNotAllowed');
    assert.equal(problemOf({ to: 'Requester' }, provider()), 'RequesterNeedsEmail');
    assert.equal(problemOf({ to: 'Requester' }, provider(email)), undefined);
  });
});
