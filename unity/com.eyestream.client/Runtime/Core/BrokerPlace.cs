using System;
using System.Globalization;

namespace Eyestream
{
    /// <summary>Where the private broker is, and who we are there.</summary>
    public sealed class BrokerPlace
    {
        const int HexDigits = 64, LongestText = 1024;

        public string Host = "localhost";
        public int Port = 1883;
        public bool Tls;
        /// <summary>SHA-256 of the broker's certificate in hexadecimal digits, with colons or without. Then only this
        /// certificate is trusted, whoever signed it, and its name is not looked at. More than one stand between spaces.
        /// Empty: the system's authorities decide, and the name must be Host.</summary>
        public string PinnedSha256 = "";
        public string User = "", Password = "";
        /// <summary>A ping each so many seconds. A broker that is silent for one and a half times as long is gone.</summary>
        public int KeepAliveSeconds = 20;
        /// <summary>Patience with a connection, a login and each packet.</summary>
        public int TimeoutSeconds = 10;

        /// <summary>What is wrong with these settings and what is expected; empty where nothing is.</summary>
        public string Wrong()
        {
            if (string.IsNullOrEmpty(Host) || Host.Length > LongestText) return "the broker has no host name";
            if (Host.IndexOf("/", StringComparison.Ordinal) >= 0)
                return "the host is '" + Host + "': expected a name or an address without mqtt://";
            if (Port < 1 || Port > 65535) return "the port is " + Port + ": expected 1 to 65535, usually 1883, or 8883 with TLS";
            if (KeepAliveSeconds < 1 || KeepAliveSeconds > 65535) return "the keep-alive is " + KeepAliveSeconds + " s: expected 1 to 65535";
            if (TimeoutSeconds < 1 || TimeoutSeconds > 3600) return "the timeout is " + TimeoutSeconds + " s: expected 1 to 3600";
            foreach (string pin in Pins()) if (!Hexadecimal(pin)) return "a pin is '" + pin + "': expected 64 hexadecimal digits";
            if (Pins().Length > 0 && !Tls) return "there is a pin, and TLS is off: turn TLS on";
            string user = User ?? "", password = Password ?? "";
            if (user.Length > LongestText || password.Length > LongestText) return "user or password has more than " + LongestText + " characters";
            if (user.Length == 0 && password.Length > 0) return "there is a password and no user";
            if (user.Length > 0 && !Tls && !Loopback()) return "a login without TLS would cross the network in the clear: turn TLS on";
            return "";
        }

        /// <summary>The pins, each as 64 capital digits where it is right.</summary>
        public string[] Pins()
        {
            string text = (PinnedSha256 ?? "").Replace(":", "").ToUpper(CultureInfo.InvariantCulture);
            return text.Split(new[] { ' ', ',', ';', '\n', '\r', '\t' }, StringSplitOptions.RemoveEmptyEntries);
        }

        static bool Hexadecimal(string pin)
        {
            foreach (char digit in pin) if ("0123456789ABCDEF".IndexOf(digit) < 0) return false;
            return pin.Length == HexDigits;
        }

        bool Loopback() { return Host == "localhost" || Host == "::1" || Host.StartsWith("127.", StringComparison.Ordinal); }

        /// <summary>What is wrong with a name of a device, a stream or a sidecar; empty where nothing is.</summary>
        public static string WrongName(string what, string name)
        {
            bool fits = !string.IsNullOrEmpty(name) && name.Length <= 64 && name[0] != '_' && name[0] != '-';
            foreach (char one in name ?? "")
                fits &= (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') || (one >= '0' && one <= '9') || one == '_' || one == '-';
            return fits ? "" : "the " + what + " is called '" + name + "': expected 1 to 64 letters, digits, _ or -, a letter or a digit first";
        }
    }
}
