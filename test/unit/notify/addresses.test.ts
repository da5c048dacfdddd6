import assert from 'node:assert/strict';
import { addressOfUser, parseAddresses } from '../../../src/notify/addresses.ts';

const parse = (value: unknown) => parseAddresses(Buffer.from(JSON.stringify(value)));

describe('the mail addresses of users', () => {
  const addressOf = addressOfUser(parse({ alice: 'alice@example.org', 'bob@example.org': 'bob@mail.example.org' }));
  const users: readonly (readonly [title: string, user: string, address: string | undefined])[] = [
    ['is that of the map', 'alice', 'alice@example.org'],
    ['is that of the map, even if the name is an address', 'bob@example.org', 'bob@mail.example.org'],
    ['is the name, if it is an address', 'carol@example.org', 'carol@example.org'],
    ['is not known for another name', 'dave', undefined],
    ['is not known for a ServiceAccount', 'system:serviceaccount:payments:default', undefined],
    ['is not known for two addresses', 'eve@example.org,all@example.org', undefined],
    ['is not known for a name with a header', 'eve@example.org\r\nBcc: all@example.org', undefined],
    ['is not known for an address in brackets', 'Eve <eve@example.org>', undefined],
    ['is not known for a name of 255 characters', `${'e'.repeat(243)}@example.org`, undefined],
    ['is not known for a property of every object', 'constructor', undefined],
  ];
  for (const [title, user, address] of users) it(title, () => assert.equal(addressOf(user), address));

  for (const [title, value, message] of [
    ['no object', ['alice@example.org'], /the file must be an object of addresses by user$/],
    [
      'a list of addresses',
      { alice: ['alice@example.org'] },
      /the address of "alice" is "object"; it must be one mail/,
    ],
    ['two addresses', { alice: 'a@example.org, b@example.org' }, /is "a@example\.org, b@example\.org"; it must be one/],
  ] as const) {
    it(`are rejected with ${title}`, () => assert.throws(() => parse(value), { code: 'InvalidAddresses', message }));
  }
});
