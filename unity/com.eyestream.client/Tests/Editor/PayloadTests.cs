using System;
using System.Collections.Generic;
using NUnit.Framework;

namespace Eyestream.Tests
{
    /// <summary>Payloads of the wire: the good ones are read, the bad ones refused, whatever their bytes are.</summary>
    [TestFixture]
    public sealed class PayloadTests
    {
        /// <summary>The bytes of a golden payload, and its kind.</summary>
        public static byte[] Bytes(string name, out string kind)
        {
            for (int i = 0; i < Golden.Payloads.GetLength(0); i++)
            {
                if (Golden.Payloads[i, 0] != name) continue;
                kind = Golden.Payloads[i, 1];
                return Convert.FromBase64String(Golden.Payloads[i, 3]);
            }
            throw new ArgumentException("no golden payload is called " + name);
        }

        public static byte[] Bytes(string name)
        {
            string kind;
            return Bytes(name, out kind);
        }

        /// <summary>The word of the refusal; empty where it is read.</summary>
        static string Refusal(string kind, byte[] payload)
        {
            try { Payload.Decode(kind, payload); }
            catch (Refused refused) { return refused.Message; }
            return "";
        }

        [Test]
        public void EveryGoldenPayloadIsReadOrRefusedWithItsWord()
        {
            var ofTheConfiguration = new List<string> { "schema", "shape" }; // which a sidecar compares, and we do not
            for (int i = 0; i < Golden.Payloads.GetLength(0); i++)
            {
                string kind, name = Golden.Payloads[i, 0], word = Golden.Payloads[i, 2];
                byte[] payload = Bytes(name, out kind);
                string found = Refusal(kind, payload);
                if (found.Length > 0 || !ofTheConfiguration.Contains(word)) Assert.AreEqual(word, found, name);
            }
            Assert.Greater(Golden.Payloads.GetLength(0), 50);
        }

        [Test]
        public void AChunkSaysWhatItSays()
        {
            var chunk = Payload.Decode("private", Bytes("private-gaze"));
            Assert.AreEqual(11400714819323198485UL, chunk["session"]);
            Assert.AreEqual(new[] { -12.5f, 3.25f, 8f, 0.125f, 14f }, chunk["values"]);
            Assert.AreEqual(1031.5, chunk["at"]);
        }

        [Test]
        public void EveryBeginningOfAPayloadIsRefused()
        {
            for (int i = 0; i < Golden.Payloads.GetLength(0); i++)
            {
                if (Golden.Payloads[i, 2].Length > 0) continue;
                byte[] whole = Convert.FromBase64String(Golden.Payloads[i, 3]);
                for (int length = 0; length < whole.Length; length++)
                {
                    var cut = new byte[length];
                    Array.Copy(whole, cut, length);
                    Assert.AreNotEqual("", Refusal(Golden.Payloads[i, 1], cut), Golden.Payloads[i, 0] + " " + length);
                }
            }
        }

        [Test]
        public void LengthsThatLieAreRefusedAndTakeNoMemory()
        {
            long before = GC.GetTotalMemory(true);
            foreach (byte code in new byte[] { 0xc6, 0xc9, 0xdb, 0xdd, 0xdf })
            {
                byte[] lie = { 0x82, 0xa1, 0x76, 1, 0xa1, 0x61, code, 0x7f, 0xff, 0xff, 0xff };
                Assert.AreEqual("not_msgpack", Refusal("status", lie), code.ToString("x"));
                lie[7] = 0xff; // above what an int holds
                Assert.AreEqual("not_msgpack", Refusal("status", lie), code.ToString("x"));
            }
            Assert.Less(GC.GetTotalMemory(false) - before, 1 << 20);
        }

        [Test]
        public void BytesThatAreChangedAreReadOrRefusedAndNothingElse()
        {
            var random = new Random(41);
            int read = 0, refused = 0;
            for (int turn = 0; turn < 20000; turn++)
            {
                int i = random.Next(Golden.Payloads.GetLength(0));
                byte[] payload = Convert.FromBase64String(Golden.Payloads[i, 3]);
                for (int changes = random.Next(1, 4); changes > 0 && payload.Length > 0; changes--)
                    payload[random.Next(payload.Length)] = (byte)random.Next(256);
                if (Refusal(Golden.Payloads[i, 1], payload).Length > 0) refused++;
                else read++;
            }
            Assert.Greater(read, 1000);
            Assert.Greater(refused, 1000);
        }
    }
}
