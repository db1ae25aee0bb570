using System;
using System.IO;
using System.Text;

namespace Eyestream
{
    /// <summary>The packets of MQTT 3.1.1 that a subscriber needs, as bytes.</summary>
    public static class MqttPackets
    {
        public const byte ConnAck = 0x20, Publish = 0x30, SubAck = 0x90, PingResp = 0xD0;
        /// <summary>The largest packet that is read: the largest payload of the wire, its topic and its numbers.</summary>
        public const int MostBytes = 4194304 + 1024;

        static readonly Encoding Utf8 = new UTF8Encoding(false, true);

        /// <summary>CONNECT with a clean session.</summary>
        public static byte[] Connect(BrokerPlace place, string client)
        {
            var body = new MemoryStream();
            bool login = place.User.Length > 0;
            Text(body, "MQTT");
            body.WriteByte(4); // the level of 3.1.1
            body.WriteByte((byte)(2 | (login ? 0xC0 : 0)));
            body.WriteByte((byte)(place.KeepAliveSeconds >> 8));
            body.WriteByte((byte)place.KeepAliveSeconds);
            Text(body, client);
            if (login)
            {
                Text(body, place.User);
                Text(body, place.Password ?? "");
            }
            return Packet(0x10, body);
        }

        /// <summary>SUBSCRIBE to all topics at QoS 1, with the packet number 1.</summary>
        public static byte[] Subscribe(string[] topics)
        {
            var body = new MemoryStream();
            body.WriteByte(0);
            body.WriteByte(1);
            foreach (string topic in topics)
            {
                Text(body, topic);
                body.WriteByte(1);
            }
            return Packet(0x82, body);
        }

        public static byte[] Acknowledge(int number) { return new byte[] { 0x40, 2, (byte)(number >> 8), (byte)number }; }

        public static byte[] Ping() { return new byte[] { 0xC0, 0 }; }

        /// <summary>One packet from a broker: its first byte, and what follows the length. `read` gives so many bytes.</summary>
        /// <exception cref="Refused">It is longer than `most`, or no packet.</exception>
        public static byte[] Read(Func<int, byte[]> read, int most, out byte head)
        {
            head = read(1)[0];
            int length = 0;
            for (int shift = 0; ; shift += 7)
            {
                Refused.Unless(shift < 28, "the broker sends what is no MQTT: a length of more than four bytes");
                byte digit = read(1)[0];
                length |= (digit & 127) << shift;
                if (digit < 128) break;
            }
            Refused.Unless(length <= most, "the broker sends a packet of " + length + " bytes: expected at most " + most);
            return read(length);
        }

        /// <summary>The parts of a PUBLISH; number is negative at QoS 0.</summary>
        /// <exception cref="Refused">It is malformed.</exception>
        public static void Parse(byte head, byte[] body, out string topic, out byte[] payload, out int number)
        {
            int qos = head >> 1 & 3;
            Refused.Unless(qos < 2, "the broker sends a message at QoS " + qos + ": expected 0 or 1");
            Refused.Unless(body.Length >= 2, "the broker sends a message without a topic");
            int from = 2 + (body[0] << 8 | body[1]), after = from + 2 * qos;
            Refused.Unless(after <= body.Length, "the broker sends a message whose topic is longer than the message");
            try { topic = Utf8.GetString(body, 2, from - 2); }
            catch (DecoderFallbackException) { throw new Refused("the broker sends a topic that is not UTF-8"); }
            number = qos == 0 ? -1 : body[from] << 8 | body[from + 1];
            payload = new byte[body.Length - after];
            Array.Copy(body, after, payload, 0, payload.Length);
        }

        static void Text(Stream body, string text)
        {
            byte[] bytes = Utf8.GetBytes(text);
            body.WriteByte((byte)(bytes.Length >> 8));
            body.WriteByte((byte)bytes.Length);
            body.Write(bytes, 0, bytes.Length);
        }

        static byte[] Packet(byte head, MemoryStream body)
        {
            var packet = new MemoryStream();
            packet.WriteByte(head);
            long rest = body.Length;
            for (; rest > 127; rest >>= 7) packet.WriteByte((byte)(128 + rest % 128));
            packet.WriteByte((byte)rest);
            body.WriteTo(packet);
            return packet.ToArray();
        }
    }
}
